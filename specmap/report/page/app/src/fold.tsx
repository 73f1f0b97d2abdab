// Details whose content is made when they are first opened, or printed.
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";

export function Fold(props: { summary: ComponentChildren; open?: boolean; children: () => ComponentChildren }) {
  const [made, setMade] = useState(props.open ?? false);
  return (
    <details open={props.open ?? false} onToggle={(event) => event.currentTarget.open && setMade(true)}>
      <summary>{props.summary}</summary>
      {made && <div class="fold stack">{props.children()}</div>}
    </details>
  );
}

// Small pieces that every section uses.
import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef } from "preact/hooks";
import type { Page, Phase } from "./data.ts";

/** Sign and class of each verdict word; the word itself is always shown beside the sign. */
export const VERDICTS: Record<string, { sign: string; css: string; says: string }> = {
  GRAPH: { sign: "●", css: "graph", says: "replays a CUDA graph" },
  PIECEWISE: { sign: "◐", css: "piecewise", says: "replays piecewise or breakable graphs" },
  EAGER: { sign: "▲", css: "eager", says: "runs eager, kernel by kernel" },
  NOT_RUN: { sign: "–", css: "not_run", says: "does not run" },
  UNKNOWN: { sign: "?", css: "unknown", says: "could not be decided" },
  depends: { sign: "◇", css: "depends", says: "depends on what is not given" },
  PARTIAL: { sign: "◑", css: "depends", says: "part graph, part eager" },
  mixed: { sign: "◧", css: "depends", says: "not the same in all passes" },
  CAPTURE: { sign: "◎", css: "not_run", says: "a graph was being captured" },
  "not exercised": { sign: "–", css: "not_run", says: "no such pass in the run" },
};

export function verdictLook(word: string): { sign: string; css: string; says: string } {
  return VERDICTS[word] ?? { sign: "?", css: "unknown", says: "" };
}

/** Whether a phase that ends so is no loss: what runs once a request is eager as a rule. */
export function isUsual(page: Page, phase: string, word: string): boolean {
  return word === "EAGER" && !page.cycle.some((name) => name === phase);
}

/** `usual`: a word that elsewhere tells a loss tells none here. */
export function Chip({ word, changed, usual }: { word: string | null; changed?: boolean; usual?: boolean }) {
  if (!word) return <span class="soft">–</span>;
  const look = verdictLook(word);
  return (
    <span class={`chip ${usual ? "usual" : look.css}${changed ? " changed" : ""}`} title={usual ? `${look.says}, as is usual for what runs once a request` : look.says}>
      <span class="sign" aria-hidden="true">
        {look.sign}
      </span>
      {word}
    </span>
  );
}

/** The batch sizes of a range, in words. */
export function sizes({ first, last }: { first: number; last: number | null }): string {
  if (last === null) return `${first} and more`;
  return first === last ? String(first) : `${first} to ${last}`;
}

/** At which batch sizes a phase ends otherwise than its verdict says. */
export function OtherSizes({ phase }: { phase: Phase }) {
  return (
    <>
      {phase.ranges
        .filter((range) => range.verdict !== phase.verdict)
        .map((range) => (
          <div key={range.first} class="soft small other-sizes">
            {range.verdict} for bs {sizes(range)}
          </div>
        ))}
    </>
  );
}

/** A section of the page, with its heading and a line beside it. */
export function Section(props: { id: string; title: string; note?: ComponentChildren; children: ComponentChildren }) {
  return (
    <section id={props.id} aria-labelledby={`${props.id}-title`}>
      <header>
        <h2 id={`${props.id}-title`}>{props.title}</h2>
        {props.note && <p>{props.note}</p>}
      </header>
      {props.children}
    </section>
  );
}

/** The one line of a section that has nothing to show: why, and how to get it. */
export function None({ children }: { children: ComponentChildren }) {
  return <p class="none">{children}</p>;
}

/** A box that scrolls by itself, and that the keyboard can reach for that. */
export function Scroll({ label, tall, children }: { label: string; tall?: boolean; children: ComponentChildren }) {
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const here = box.current;
    if (!here) return undefined;
    // Where more lies to the right, the right edge fades.
    const look = () => here.classList.toggle("more", here.scrollLeft + here.clientWidth < here.scrollWidth - 2);
    const watch = new ResizeObserver(look);
    for (const one of [here, ...here.children]) watch.observe(one);
    here.addEventListener("scroll", look, { passive: true });
    return () => {
      watch.disconnect();
      here.removeEventListener("scroll", look);
    };
  }, []);
  return (
    <div ref={box} class={tall ? "scroll tall" : "scroll"} role="group" aria-label={label} tabIndex={0}>
      {children}
    </div>
  );
}

/** A labelled choice of one of several. */
export function Choice<T extends string>(props: {
  label: string;
  value: T;
  options: readonly (readonly [T, string])[];
  onChange: (value: T) => void;
}) {
  const id = useId();
  return (
    <label for={id}>
      {props.label}
      <select id={id} value={props.value} onChange={(event) => props.onChange(event.currentTarget.value as T)}>
        {props.options.map(([value, text]) => (
          <option key={value} value={value}>
            {text}
          </option>
        ))}
      </select>
    </label>
  );
}

/** Buttons of which one is pressed. */
export function Buttons<T extends string>(props: {
  label: string;
  value: T;
  options: readonly (readonly [T, ComponentChildren])[];
  onChange: (value: T) => void;
}) {
  return (
    <span class="group" role="group" aria-label={props.label}>
      {props.options.map(([value, text]) => (
        <button key={value} type="button" aria-pressed={value === props.value} onClick={() => props.onChange(value)}>
          {text}
        </button>
      ))}
    </span>
  );
}

/** Lines of source with their numbers; `here` marks one of them. */
export function Source(props: { lines: readonly string[]; start: number; here?: number | readonly number[]; label: string }) {
  const marked = new Set(typeof props.here === "number" ? [props.here] : props.here ?? []);
  return (
    <pre class="source" tabIndex={0} role="group" aria-label={props.label}>
      {props.lines.map((line, index) => {
        const at = props.start + index;
        return (
          <span key={at} class={marked.has(at) ? "row here" : "row"}>
            <span class="at">{at}</span>
            {line + "\n"}
          </span>
        );
      })}
    </pre>
  );
}

/** A unified diff; the signs stay, so that colour is not alone. */
export function Diff({ text, label }: { text: string; label: string }) {
  const kind = (line: string) =>
    /^(\+\+\+|---|@@)/.test(line) ? "hunk" : line.startsWith("+") ? "plus" : line.startsWith("-") ? "minus" : "";
  return (
    <pre class="source" tabIndex={0} role="group" aria-label={label}>
      {text.replace(/\n$/, "").split("\n").map((line, index) => (
        <span key={index} class={`row ${kind(line)}`}>
          {line + "\n"}
        </span>
      ))}
    </pre>
  );
}

export function count(number: number): string {
  return number.toLocaleString("en-US");
}

export function plural(number: number, word: string): string {
  return `${count(number)} ${word}${number === 1 ? "" : "s"}`;
}

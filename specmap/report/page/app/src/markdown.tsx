// The part of Markdown that rule pages use: headings, lists, fences, code, bold. Links stay text,
// because the page opens nothing by itself.
import type { ComponentChildren } from "preact";

export type Block =
  | { kind: "heading"; level: number; text: string }
  | { kind: "code"; text: string }
  | { kind: "list"; items: string[] }
  | { kind: "text"; text: string };

/** Take Markdown apart into blocks. */
export function blocksOf(markdown: string): Block[] {
  const blocks: Block[] = [];
  let fence: string[] | undefined;
  let open = false; // the next line goes on with the last block
  for (const line of markdown.split("\n")) {
    const last = blocks.at(-1);
    const heading = /^(#+) +(.*)/.exec(line);
    const item = /^\s*(?:[-*]|\d+\.) +(.*)/.exec(line);
    if (/^\s*```/.test(line)) {
      if (fence) blocks.push({ kind: "code", text: fence.join("\n") });
      fence = fence ? undefined : [];
      open = false;
    } else if (fence) fence.push(line);
    else if (!line.trim()) open = false;
    else if (heading) blocks.push({ kind: "heading", level: heading[1]?.length ?? 1, text: heading[2] ?? "" });
    else if (item) {
      if (last?.kind === "list" && open) last.items.push(item[1] ?? "");
      else blocks.push({ kind: "list", items: [item[1] ?? ""] });
      open = true;
    } else if (open && last?.kind === "text") last.text += ` ${line.trim()}`;
    else if (open && last?.kind === "list") last.items.push(`${last.items.pop()} ${line.trim()}`);
    else {
      blocks.push({ kind: "text", text: line.trim() });
      open = true;
    }
  }
  if (fence) blocks.push({ kind: "code", text: fence.join("\n") });
  return blocks;
}

function inline(text: string): ComponentChildren {
  return text.split(/(`[^`]+`|\*\*[^*]+\*\*|\[[^\]]+\]\([^)]+\))/).map((part, index) => {
    if (part.startsWith("`") && part.length > 1) return <code key={index}>{part.slice(1, -1)}</code>;
    if (part.startsWith("**") && part.length > 3) return <strong key={index}>{part.slice(2, -2)}</strong>;
    const link = /^\[([^\]]+)\]\(([^)]+)\)$/.exec(part);
    return link ? `${link[1]} (${link[2]})` : part;
  });
}

/** Markdown as elements; its headings start below a section's. `skip` leaves the first heading out. */
export function Markdown({ text, skip }: { text: string; skip?: boolean }) {
  const blocks = blocksOf(text);
  const shown = skip && blocks[0]?.kind === "heading" ? blocks.slice(1) : blocks;
  return (
    <div class="stack prose">
      {shown.map((block, index) => {
        if (block.kind === "heading") return <h3 key={index}>{inline(block.text)}</h3>;
        if (block.kind === "code") return <pre key={index} class="source pad" tabIndex={0}>{block.text}</pre>;
        if (block.kind === "text") return <p key={index}>{inline(block.text)}</p>;
        return (
          <ul key={index}>
            {block.items.map((item, at) => (
              <li key={at}>{inline(item)}</li>
            ))}
          </ul>
        );
      })}
    </div>
  );
}

// A place in the source, and the text around it.
import type { Place, Side } from "./data.ts";
import { placeText } from "./context.ts";
import { Fold } from "./fold.tsx";
import { Source } from "./ui.tsx";

const MOST = 120;

/** The lines around a place that the page holds, at most `around` before and after it. */
export function linesAt(side: Side, place: Place, around: number): { start: number; lines: string[] } | undefined {
  const chunk = side.sources[place.file]?.find((c) => c.line <= place.line && place.line < c.line + c.lines.length);
  if (!chunk) return undefined;
  const start = Math.max(chunk.line, place.line - around);
  const end = Math.min(chunk.line + chunk.lines.length, Math.min(place.end, place.line + MOST) + around + 1);
  return { start, lines: chunk.lines.slice(start - chunk.line, end - chunk.line) };
}

const LONG = 12;

/** The source at a place, its lines marked; nothing where the page does not hold it. */
export function Excerpt({ side, place, around = 4 }: { side: Side; place: Place | null; around?: number }) {
  const found = place && linesAt(side, place, around);
  if (!place || !found) return place ? <p class="soft mono">{placeText(side, place)} (not on this page)</p> : null;
  const last = place.end - place.line > LONG ? place.line : place.end; // of a whole function its head alone
  const marked = Array.from({ length: last - place.line + 1 }, (_, index) => place.line + index);
  return (
    <figure class="excerpt">
      <figcaption class="mono soft">{placeText(side, place)}</figcaption>
      <Source lines={found.lines} start={found.start} here={marked} label={`Source at ${placeText(side, place)}`} />
    </figure>
  );
}

/** A place that opens its source. */
export function PlaceFold(props: { side: Side; place: Place | null; text?: string; short?: boolean }) {
  const { side, place, text, short } = props;
  if (!place) return text ? <p>{text}</p> : null;
  const label = short ? placeText(side, place).replace(/^.*\//, "") : placeText(side, place);
  return (
    <Fold summary={<>{text && <span>{text} </span>}<span class="mono">{label}</span></>}>
      {() => <Excerpt side={side} place={place} />}
    </Fold>
  );
}

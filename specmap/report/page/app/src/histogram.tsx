// How the passes of each phase are spread, over the cycles that the timeline shows.
import { useMemo, useState } from "preact/hooks";
import type { Cycles } from "./cycles.ts";
import { bins, quantile } from "./lanes.ts";
import { Buttons, count } from "./ui.tsx";
import type { Window } from "./view.ts";

const BINS = 36;
const [WIDTH, HIGH] = [288, 64];

type Measure = "cpu" | "gpu" | "size" | "padding" | "replays";
const MEASURES: readonly (readonly [Measure, string])[] = [
  ["cpu", "CPU time"],
  ["gpu", "GPU time"],
  ["size", "requests"],
  ["padding", "padding"],
  ["replays", "graph launches"],
];
const UNITS: Record<Measure, string> = { cpu: "µs", gpu: "µs", size: "requests", padding: "padded requests", replays: "launches" };

interface Spread {
  title: string;
  graph: number[];
  eager: number[];
}

/** Collect a measure of the passes between two cycles, by key; passes that do not know it are left out. */
function spreads(cycles: Cycles, view: Window, measure: Measure): Spread[] {
  const found = cycles.keys.map((key): Spread => ({ title: key.phase, graph: [], eager: [] }));
  const from = cycles.first[cycles.indexOf(view.from)] ?? 0;
  const to = cycles.first[cycles.indexOf(view.to)] ?? 0;
  const [keys, states] = [cycles.pass("key"), cycles.pass("state")];
  const eager = cycles.rank.timeline.states.map((state) => state === "EAGER" || state === "PARTIAL");
  const capture = cycles.rank.timeline.states.indexOf("CAPTURE");
  const value = valueOf(cycles, measure);
  for (let pass = from; pass < to; pass++) {
    const spread = found[keys[pass] ?? -1];
    const state = states[pass] ?? 0;
    const held = value(pass);
    if (spread && state !== capture && held !== null) (eager[state] ? spread.eager : spread.graph).push(held);
  }
  return found;
}

function valueOf(cycles: Cycles, measure: Measure): (pass: number) => number | null {
  const cpu = cycles.pass("cpu");
  const [gpu, size, graphSize, replays] = [cycles.pass("gpu"), cycles.pass("size"), cycles.pass("graphSize"), cycles.pass("replays")];
  const known = (value: number | undefined) => (value ? value - 1 : null);
  if (measure === "cpu") return (pass) => cpu[pass] ?? null;
  if (measure === "gpu") return (pass) => known(gpu[pass]);
  if (measure === "size") return (pass) => known(size[pass]);
  if (measure === "replays") return (pass) => replays[pass] ?? null;
  return (pass) => (graphSize[pass] && size[pass] ? (graphSize[pass] ?? 0) - (size[pass] ?? 0) : null);
}

export function Histograms({ all, rank, view }: { all: readonly Cycles[]; rank: number; view: Window }) {
  const [measure, setMeasure] = useState<Measure>("cpu");
  const cycles = all[rank];
  const found = useMemo(() => (cycles ? spreads(cycles, view, measure) : []), [cycles, view, measure]);
  const shown = found.filter((spread) => spread.graph.length + spread.eager.length > 0);
  return (
    <div class="stack histograms">
      <div class="tools">
        <h3>Passes of each phase, {cycles?.rank.title}, in the cycles shown</h3>
        <Buttons label="Measure" value={measure} options={MEASURES} onChange={setMeasure} />
      </div>
      {!shown.length && <p class="none">{measure === "gpu" ? "GPU times were not recorded: trace with --spans." : "The passes shown do not hold this."}</p>}
      <div class="figures">
        {shown.map((spread, index) => (
          <Histogram key={index} spread={spread} unit={UNITS[measure]} />
        ))}
      </div>
    </div>
  );
}

/** Microseconds in the unit that a person would use, three figures. */
function time(us: number): string {
  if (us < 1000) return `${count(Math.round(us))} µs`;
  return us < 1e6 ? `${Number((us / 1000).toPrecision(3))} ms` : `${Number((us / 1e6).toPrecision(3))} s`;
}

function Histogram({ spread, unit }: { spread: Spread; unit: string }) {
  const { graph, eager } = spread;
  const sorted = Float64Array.from([...graph, ...eager]).sort();
  const low = sorted[0] ?? 0;
  const high = Math.max(sorted.at(-1) ?? 0, low + 1);
  const log = low > 0 && high / low > 30; // a few slow passes would squeeze all others into one bin
  const range = { least: low, most: high, log };
  const [a, b] = [bins(graph, BINS, range), bins(eager, BINS, range)];
  const most = Math.max(...Array.from({ length: BINS }, (_, at) => (a[at] ?? 0) + (b[at] ?? 0)));
  const scale = (value: number) => (value ? Math.max(1.5, (value / most) * (HIGH - 4)) : 0);
  const step = WIDTH / BINS;
  const said = (value: number) => (unit === "µs" ? time(value) : `${count(Math.round(value))} ${unit}`);
  const figures = `median ${said(quantile(sorted, 0.5))}, 99 % below ${said(quantile(sorted, 0.99))}, most ${said(sorted.at(-1) ?? 0)}`;
  const split = `${count(graph.length)} in a graph, ${count(eager.length)} eager`;
  return (
    <figure class="panel histogram">
      <figcaption>
        <strong>{spread.title}</strong> <span class="soft">{split}</span>
      </figcaption>
      <svg viewBox={`0 0 ${WIDTH} ${HIGH + 14}`} role="img" aria-label={`${spread.title}: ${split}; ${figures}`}>
        {Array.from({ length: BINS }, (_, at) => {
          const [one, two] = [scale(a[at] ?? 0), scale(b[at] ?? 0)];
          return (
            <g key={at}>
              <rect class="bar-graph" x={at * step + 0.5} y={HIGH - one} width={step - 1} height={one} />
              <rect class="bar-eager" x={at * step + 0.5} y={HIGH - one - two} width={step - 1} height={two} />
            </g>
          );
        })}
        <line x1="0" x2={WIDTH} y1={HIGH} y2={HIGH} />
        <text x="0" y={HIGH + 12}>{said(low)}</text>
        <text x={WIDTH} y={HIGH + 12} text-anchor="end">{`${said(high)}${log ? ", log scale" : ""}`}</text>
      </svg>
      <p class="soft small">{figures}</p>
    </figure>
  );
}

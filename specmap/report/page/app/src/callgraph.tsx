// The call graph: what is drawn, how it is coloured, and what was found in it.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { useShared } from "./context.ts";
import { callsOf, observedWord, ofWorker, overview, staticWord, workerOf, type Cut } from "./cut.ts";
import type { PhaseName, Rank, Side } from "./data.ts";
import { dotOf, type Size } from "./dot.ts";
import { drawingOf, type Drawing } from "./drawing.ts";
import { layOut } from "./graphviz.ts";
import { GraphView, LINE, type GraphHandle, type Look } from "./graphview.tsx";
import { NodePanel } from "./nodepanel.tsx";
import { search } from "./search.ts";
import { mayRun } from "./sorting.ts";
import { Buttons, Chip, Choice, None, Section, count, plural } from "./ui.tsx";
import { useSeen } from "./seen.ts";

const LISTED = 30;
type Colour = "static" | "observed";

/** `named`: phases say whose they are. */
function lookOf(side: Side, index: number, colour: Colour, rank: Rank | undefined, named: boolean): Look {
  const node = side.graph.nodes[index];
  if (!node) return { lines: [], kind: "", verdict: "", state: "" };
  const calls = callsOf(side, node.symbol, rank);
  const observed = colour === "observed" && side.run !== null;
  const word = node.phase ? (observed ? observedWord : staticWord)(side, ...node.phase, rank) : node.verdict;
  const state = !observed || node.phase || calls === null ? "" : calls > 0 ? "ran" : "silent";
  const owner = named && node.phase ? [side.workers[node.phase[0]]?.name ?? ""] : [];
  const counted = calls !== null && observed ? [`${count(calls)} calls`] : [];
  const lines = [...owner, ...node.lines, ...counted];
  return { lines, kind: node.kind, verdict: word, state };
}

let measuring: CanvasRenderingContext2D | null | undefined;

function sizeOf(look: Look): Size {
  measuring ??= document.createElement("canvas").getContext("2d");
  if (measuring) measuring.font = '600 12px system-ui, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif';
  const wide = [...look.lines, look.verdict ? `● ${look.verdict}  ` : ""].map((line) => measuring?.measureText(line).width ?? line.length * 7);
  return { width: Math.max(40, ...wide) + 18, height: (look.lines.length + (look.verdict ? 1 : 0)) * LINE + 10 };
}

/** The drawing of a cut, once Graphviz has answered; null until then, an error as its text. */
function useDrawing(cut: Cut, side: Side, look: (node: number) => Look, wanted: boolean) {
  const [made, setMade] = useState<{ cut: Cut; drawing: Drawing } | { cut: Cut; error: string } | null>(null);
  useEffect(() => {
    if (!wanted || !cut.nodes.length) return undefined;
    let current = true;
    const dot = dotOf(side.graph, cut, (node) => sizeOf(look(node)));
    layOut(dot).then(
      (laid) => current && setMade({ cut, drawing: drawingOf(laid, cut) }),
      (error: unknown) => current && setMade({ cut, error: String(error) }),
    );
    return () => {
      current = false;
    };
  }, [cut, side, look, wanted]);
  return made;
}

/** The node of the phase that takes most of a worker's cycle; null where no run says so. */
function longest(side: Side, worker: number): number | null {
  const share = (node: { phase: readonly [number, number] | null }) =>
    node.phase?.[0] === worker ? (side.workers[worker]?.phases[node.phase[1]]?.observed?.share ?? 0) : 0;
  const most = Math.max(0, ...side.graph.nodes.map(share));
  return most ? side.graph.nodes.findIndex((node) => share(node) === most) : null;
}

export function CallGraph() {
  const { page, side, pick, go } = useShared();
  const section = useRef<HTMLDivElement>(null);
  const seen = useSeen(section);
  const handle = useRef<GraphHandle>(null);
  const [everything, setEverything] = useState(false);
  const [colour, setColour] = useState<Colour>("static");
  const [leaves, setLeaves] = useState(false);
  const [rankAt, setRankAt] = useState("");
  const [query, setQuery] = useState("");
  const [selected, setSelected] = useState<number | null>(() => longest(side, pick.worker));
  const rank = side.run?.ranks[Number(rankAt || -1)];
  const worker = everything ? -1 : pick.worker;
  const mask = pick.phase ? 1 << page.phases.indexOf(pick.phase) : 0;

  const cut = useMemo(() => {
    if (worker >= 0) return ofWorker(side.graph, worker, mask, leaves);
    const shown = side.workers.flatMap((one, at) => (mayRun(side, one) ? [at] : []));
    return overview(side, mask, page.phases, new Set(shown));
  }, [side, worker, mask, leaves, page]);
  const look = useMemo(() => (node: number) => lookOf(side, node, colour, rank, worker < 0), [side, colour, rank, worker]);
  const made = useDrawing(cut, side, look, seen);
  const items = useMemo(
    () => side.graph.nodes.map((node) => ({ name: node.lines[0] ?? "", text: [...node.lines, node.full, node.place?.file ?? ""].join(" ") })),
    [side],
  );
  const found = useMemo(() => search(query, items), [query, items]);
  const matches = useMemo(() => new Set(found), [found]);

  // The phase that was picked elsewhere is the node to look at.
  useEffect(() => {
    if (!pick.phase) return;
    setEverything(false);
    const node = side.graph.nodes.findIndex((one) => one.phase?.[0] === pick.worker && side.workers[pick.worker]?.phases[one.phase[1]]?.name === pick.phase);
    if (node >= 0) setSelected(node);
  }, [pick, side]);

  const select = (node: number) => {
    setSelected(node);
    const data = side.graph.nodes[node];
    if (!data || cut.nodes.includes(node)) return;
    if (data.kind === "leaves") setLeaves(true);
    setEverything(false);
    go({ worker: workerOf(data, pick.worker), phase: "" }, "graph");
  };
  const find = (node: number) => {
    select(node);
    requestAnimationFrame(() => handle.current?.show(node));
  };

  if (!side.graph.nodes.length) {
    return (
      <Section id="graph" title="Call graph">
        <None>The map holds no call graph: no speculative worker was found in the source.</None>
      </Section>
    );
  }
  const named = side.workers[worker];
  return (
    <Section id="graph" title="Call graph" note={named ? `${named.name}, from its entry to its sinks` : "phases of all workers and where they end"}>
      <div ref={section}>
        <div class="tools" role="group" aria-label="Call graph controls">
          <Choice
            label="Worker"
            value={String(worker)}
            options={[["-1", "all (phases only)"] as const, ...side.workers.flatMap((one, at) => (one.phases.length ? [[String(at), one.name] as const] : []))]}
            onChange={(value) => {
              setEverything(value === "-1");
              if (value !== "-1") go({ worker: Number(value), phase: pick.phase }, "");
            }}
          />
          <Choice
            label="Phase"
            value={pick.phase}
            options={[["", "all"] as const, ...page.phases.map((name) => [name, name] as const)]}
            onChange={(phase) => go({ worker: pick.worker, phase: phase as PhaseName | "" }, "")}
          />
          <label>
            <input type="checkbox" checked={leaves} onChange={(event) => setLeaves(event.currentTarget.checked)} />
            calls not followed
          </label>
          <span class="label">
            Colour
            <Buttons label="Colour by" value={colour} options={[["static", "static"], ["observed", "observed"]] as const} onChange={setColour} />
          </span>
          {side.run && (
            <Choice
              label="Rank"
              value={rankAt}
              options={[["", "all"] as const, ...side.run.ranks.map((one, at) => [String(at), one.title] as const)]}
              onChange={setRankAt}
            />
          )}
          <label>
            Search
            <input type="search" value={query} onInput={(event) => setQuery(event.currentTarget.value)} onKeyDown={(event) => event.key === "Enter" && found[0] !== undefined && find(found[0])} />
          </label>
          <span class="group" role="group" aria-label="Zoom">
            <button type="button" aria-label="Zoom in" onClick={() => handle.current?.zoom(1.25)}>
              +
            </button>
            <button type="button" aria-label="Zoom out" onClick={() => handle.current?.zoom(0.8)}>
              −
            </button>
            <button type="button" onClick={() => handle.current?.fit()}>
              Fit
            </button>
          </span>
        </div>
        {colour === "observed" && !side.run && <None>No run was given, so nothing is observed: add --run DIR.</None>}
        {query && <Found found={found} side={side} shown={cut} onPick={find} />}
        <div class="columns graph-columns">
          <div class="graph-frame">
            {made && "drawing" in made && made.cut === cut ? (
              <GraphView graph={side.graph} cut={cut} drawing={made.drawing} look={look} selected={selected} matches={matches} onSelect={select} handle={handle} />
            ) : (
              <p class="waiting" role="status">
                {!cut.nodes.length ? "Nothing of the graph is in this phase." : made && "error" in made && made.cut === cut ? `The graph could not be laid out: ${made.error}. Search still finds its nodes.` : "Laying out …"}
              </p>
            )}
          </div>
          <aside class="panel node-panel" aria-label="Selected node" tabIndex={0}>
            {selected === null ? <p class="soft">Pick a node for its source, its guards and its counts.</p> : <NodePanel node={selected} rank={rank} worker={worker} onSelect={find} />}
          </aside>
        </div>
        <Legend />
      </div>
    </Section>
  );
}

function Found({ found, side, shown, onPick }: { found: number[]; side: Side; shown: Cut; onPick: (node: number) => void }) {
  const here = new Set(shown.nodes);
  const sorted = [...found.filter((node) => here.has(node)), ...found.filter((node) => !here.has(node))];
  return (
    <div class="found">
      <p class="soft" role="status">
        {plural(found.length, "node")} found{found.length > LISTED ? `, the first ${LISTED} below` : ""}
      </p>
      <ul class="plain">
        {sorted.slice(0, LISTED).map((node) => (
          <li key={node}>
            <button type="button" class="link mono" onClick={() => onPick(node)}>
              {side.graph.nodes[node]?.lines[0]}
            </button>
            {!here.has(node) && <span class="soft"> {side.workers[workerOf(side.graph.nodes[node] as never, -1)]?.name}</span>}
          </li>
        ))}
      </ul>
    </div>
  );
}

function Legend() {
  return (
    <p class="legend soft">
      {["GRAPH", "PIECEWISE", "EAGER", "NOT_RUN", "UNKNOWN", "depends"].map((word) => (
        <Chip key={word} word={word} />
      ))}
      <span>dashed: asks a decision</span>
      <span>dotted: known, not followed, or unresolved</span>
      <span>drag to pan; the wheel zooms after a click, or with Ctrl</span>
    </p>
  );
}

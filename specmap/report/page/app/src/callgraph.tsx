// The call graph: what is drawn, how it is coloured, and what was found in it.
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { placeText, useShared, type Pick } from "./context.ts";
import { callsOf, kindsOf, observedWord, ofWorker, overview, staticWord, waysOf, workerOf, type Cut } from "./cut.ts";
import type { GraphNode, Page, PhaseName, Rank, Side } from "./data.ts";
import { brief, dotOf, type Size } from "./dot.ts";
import { drawingOf, type Drawing } from "./drawing.ts";
import { layOut } from "./graphviz.ts";
import { GraphView, LABEL_LINE, LINE, READABLE, TITLE_LINE, type GraphHandle, type Look } from "./graphview.tsx";
import { NodePanel } from "./nodepanel.tsx";
import { search } from "./search.ts";
import { mayRun } from "./sorting.ts";
import { Buttons, Chip, Choice, None, Section, count, isUsual, plural } from "./ui.tsx";
import { useSeen } from "./seen.ts";

const LISTED = 30;
/** The frame is as high as its drawing, within these; pixels. */
const [LOWEST, HIGHEST, ROOM] = [320, 780, 24];
type Colour = "static" | "observed";

interface Shown {
  page: Page;
  side: Side;
  pick: Pick;
  cut: Cut;
  colour: Colour;
  rank: Rank | undefined;
}

function lookOf({ page, side, pick, cut, colour, rank }: Shown, index: number): Look {
  const node = side.graph.nodes[index];
  if (!node) return { lines: [], soft: 0, kind: "", verdict: "", usual: false, state: "" };
  const calls = callsOf(side, node.symbol, rank);
  const observed = colour === "observed" && side.run !== null;
  const kinds = node.kind === "sink" ? kindsOf(side, index, cut.overview ? -1 : pick.worker, pick.phase) : [];
  const word = node.phase ? (observed ? observedWord : staticWord)(side, ...node.phase, rank) : kinds[0] ?? node.verdict;
  const state = !observed || node.phase || calls === null ? "" : calls > 0 ? "ran" : "silent";
  const owner = cut.overview && node.phase ? [side.workers[node.phase[0]]?.name ?? ""] : [];
  const counted = calls !== null && observed ? [`${count(calls)} calls`] : [];
  const phase = node.phase && side.workers[node.phase[0]]?.phases[node.phase[1]];
  const lines = [...owner, ...linesOf(side, node, pick, cut), ...counted, ...kinds.slice(1).map((kind) => `for other phases ${kind}`)];
  return { lines, soft: node.kind === "function" ? 1 : lines.length, kind: node.kind, verdict: word, usual: Boolean(phase && isUsual(page, phase.name, word)), state };
}

/** The lines of a node: of a function its class where no box says it, of a decision the test that decides. */
function linesOf(side: Side, node: GraphNode, pick: Pick, cut: Cut): string[] {
  const [first = ""] = node.lines;
  if (node.kind === "function") return cut.boxed ? node.lines : [...node.lines, ...(side.graph.clusters[node.cluster]?.title.slice(0, 1) ?? [])];
  if (node.kind !== "decision" || !node.terms.length) return brief(node.lines.filter((line) => line !== node.verdict), Infinity); // that has a line of its own
  const deciding = side.workers[pick.worker]?.phases.filter(({ name }) => !pick.phase || name === pick.phase).flatMap((phase) => phase.deciding) ?? [];
  const here = deciding.filter(({ place }) => node.terms.some((term) => place && placeText(side, term.place) === placeText(side, place)));
  const said = here.flatMap(({ text, value }) => [...brief([text]), `is ${value === null ? "unknown" : String(value)}`]);
  return [first, ...(said.length ? said : [plural(node.terms.length, "test")])];
}

const SANS = 'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif';
let measuring: CanvasRenderingContext2D | null | undefined;

/** The width of the longest line in a font of the drawing, as page.css has them. */
function widthOf(lines: readonly string[], font: string): number {
  measuring ??= document.createElement("canvas").getContext("2d");
  if (measuring) measuring.font = `${font} ${SANS}`;
  return Math.max(0, ...lines.map((line) => measuring?.measureText(line).width ?? line.length * 7));
}

function sizeOf(look: Look): Size {
  const lines = [...look.lines, look.verdict ? `● ${look.verdict}  ` : ""];
  return { width: Math.max(40, widthOf(lines, "600 12px")) + 18, height: (look.lines.length + (look.verdict ? 1 : 0)) * LINE + 10 };
}

const titleSize = (lines: readonly string[]): Size => ({ width: widthOf(lines, "11px") + 8, height: lines.length * TITLE_LINE + 4 });
const labelSize = (lines: readonly string[]): Size => ({ width: widthOf(lines, "10px") + 8, height: lines.length * LABEL_LINE + 4 });

/** The drawing of a cut, once Graphviz has answered; null until then, an error as its text. */
function useDrawing(cut: Cut, side: Side, look: (node: number) => Look, wanted: boolean) {
  const [made, setMade] = useState<{ cut: Cut; drawing: Drawing } | { cut: Cut; error: string } | null>(null);
  useEffect(() => {
    if (!wanted || !cut.nodes.length) return undefined;
    let current = true;
    const dot = dotOf(side.graph, cut, { node: (node) => sizeOf(look(node)), title: titleSize, label: labelSize });
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

export function CallGraph() {
  const { page, side, settling, pick, go } = useShared();
  const section = useRef<HTMLDivElement>(null);
  const seen = useSeen(section);
  const handle = useRef<GraphHandle>(null);
  const [everything, setEverything] = useState(false);
  const [colour, setColour] = useState<Colour>("static");
  const [leaves, setLeaves] = useState(false);
  const [rankAt, setRankAt] = useState("");
  const [query, setQuery] = useState("");
  const [selected, setSelected] = useState<number | null>(null);
  const rank = side.run?.ranks[Number(rankAt || -1)];
  const worker = everything ? -1 : pick.worker;
  const mask = pick.phase ? 1 << page.phases.indexOf(pick.phase) : 0;

  const cut = useMemo(() => {
    const phase = side.workers[worker]?.phases.findIndex(({ name }) => name === pick.phase) ?? -1;
    if (phase >= 0) return waysOf(settling, worker, phase, mask, leaves);
    if (worker >= 0) return ofWorker(side.graph, worker, mask, leaves);
    const shown = side.workers.flatMap((one, at) => (mayRun(side, one) ? [at] : []));
    return overview(side, mask, page.phases, new Set(shown));
  }, [side, settling, worker, pick.phase, mask, leaves, page]);
  const look = useMemo(() => (node: number) => lookOf({ page, side, pick, cut, colour, rank }, node), [page, side, pick, cut, colour, rank]);
  const made = useDrawing(cut, side, look, seen);
  const columns = useRef<HTMLDivElement>(null);
  const drawing = made && "drawing" in made && made.cut === cut ? made.drawing : null;
  useLayoutEffect(() => {
    const frame = columns.current?.firstElementChild;
    if (!drawing || !frame) return;
    const scale = Math.min(1, Math.max(READABLE, (frame.clientWidth - ROOM) / drawing.width));
    const high = Math.max(LOWEST, Math.min(HIGHEST, Math.ceil(drawing.height * scale) + ROOM));
    columns.current?.style.setProperty("--high", `${high}px`);
  }, [drawing]);
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
          {side.run && (
            <span class="label">
              Colour
              <Buttons label="Colour by" value={colour} options={[["static", "static"], ["observed", "observed"]] as const} onChange={setColour} />
            </span>
          )}
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
        {query && <Found found={found} side={side} shown={cut} onPick={find} />}
        <div ref={columns} class={`columns graph-columns ${selected === null ? "unpicked" : ""}`}>
          <div class="graph-frame">
            {drawing ? (
              <GraphView graph={side.graph} cut={cut} drawing={drawing} look={look} selected={selected} matches={matches} onSelect={select} handle={handle} />
            ) : (
              <p class="waiting" role="status">
                {!cut.nodes.length ? "Nothing of the graph is in this phase." : made && "error" in made && made.cut === cut ? `The graph could not be laid out: ${made.error}. Search still finds its nodes.` : "Laying out …"}
              </p>
            )}
          </div>
          <aside class="panel node-panel" aria-label="Selected node" tabIndex={0}>
            {selected === null ? <p class="soft">Pick a node for its source and its guards.</p> : <NodePanel node={selected} rank={rank} worker={worker} onSelect={find} />}
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
      <span class="chip decision">asks whether a graph can run</span>
      <span>dashed line: asks it</span>
      <span>dotted: known, not followed, or unresolved</span>
      <span>drag to pan; the wheel zooms after a click, or with Ctrl</span>
    </p>
  );
}

// What the map and the run know of one node of the call graph.
import { callsOf, kindsOf, observedWord } from "./cut.ts";
import { placeText, useShared } from "./context.ts";
import type { GraphEdge, Rank } from "./data.ts";
import { Fold } from "./fold.tsx";
import { Excerpt, PlaceFold } from "./place.tsx";
import { Chip, count, isUsual } from "./ui.tsx";

const SHORT = 160;

interface Props {
  node: number;
  rank: Rank | undefined;
  worker: number;
  onSelect: (node: number) => void;
}

export function NodePanel({ node: index, rank, worker, onSelect }: Props) {
  const { side, page, pick } = useShared();
  const node = side.graph.nodes[index];
  if (!node) return null;
  const edges = side.graph.edges.filter((edge) => worker < 0 || edge.on.some(([at]) => at === worker));
  const phases = new Set(node.on.flatMap(([at, mask]) => (worker < 0 || at === worker ? page.phases.filter((_, bit) => mask & (1 << bit)) : [])));
  return (
    <div class="stack">
      <h3 class="mono clip">{node.lines.find((line) => line !== node.verdict)}</h3>
      <p class="soft">
        {node.kind}
        {phases.size > 0 && ` in ${[...phases].join(", ")}`}
        {node.place && <span class="mono"> {placeText(side, node.place)}</span>}
      </p>
      {node.phase && <PhaseFacts at={node.phase} rank={rank} />}
      {node.kind === "sink" && kindsOf(side, index, worker, pick.phase).map((kind) => <Chip key={kind} word={kind} />)}
      <Calls symbol={node.symbol} />
      {node.full && node.full !== node.lines.join(" ") && <Whole text={node.full} />}
      {node.terms.length > 0 && (
        <>
          <h4>Tests, and what lets the graph replay</h4>
          <ul class="plain stack">
            {node.terms.map((term, at) => (
              <li key={at}>
                <code class="clip">{term.text}</code> must be <strong>{term.graphWhen ? "true" : "false"}</strong>
                <PlaceFold side={side} place={term.place} />
              </li>
            ))}
          </ul>
        </>
      )}
      <Excerpt side={side} place={node.place} around={6} />
      <Edges title="Reached from" edges={edges.filter((edge) => edge.to === index)} end="from" onSelect={onSelect} />
      <Edges title="Leads to" edges={edges.filter((edge) => edge.from === index)} end="to" onSelect={onSelect} />
    </div>
  );
}

/** What the drawing cuts short; a long condition opens on demand. */
function Whole({ text }: { text: string }) {
  if (text.length <= SHORT) return <p class="mono clip">{text}</p>;
  return (
    <Fold summary={<span class="mono">{text.slice(0, SHORT)}…</span>}>
      {() => <p class="mono clip">{text}</p>}
    </Fold>
  );
}

function PhaseFacts({ at, rank }: { at: [number, number]; rank: Rank | undefined }) {
  const { page, side } = useShared();
  const phase = side.workers[at[0]]?.phases[at[1]];
  if (!phase) return null;
  const observed = observedWord(side, at[0], at[1], rank);
  return (
    <>
      <p>
        static <Chip word={phase.verdict} usual={isUsual(page, phase.name, phase.verdict)} /> {observed && <>observed{rank ? ` on ${rank.title}` : ""} <Chip word={observed} /></>}
      </p>
      <p>{phase.reason}</p>
    </>
  );
}

function Calls({ symbol }: { symbol: string }) {
  const { side } = useShared();
  const all = callsOf(side, symbol, undefined);
  if (all === null) return symbol && side.run ? <p class="soft">The run did not count calls of this function.</p> : null;
  return (
    <dl class="facts counts">
      {side.run?.ranks.map((rank) => (
        <div key={rank.name}>
          <dt>{rank.title}</dt>
          <dd>{callsOf(side, symbol, rank) === null ? "not counted" : `${count(callsOf(side, symbol, rank) ?? 0)} calls`}</dd>
        </div>
      ))}
    </dl>
  );
}

function Edges(props: { title: string; edges: GraphEdge[]; end: "from" | "to"; onSelect: (node: number) => void }) {
  const { side } = useShared();
  if (!props.edges.length) return null;
  return (
    <>
      <h4>{props.title}</h4>
      <ul class="plain stack">
        {props.edges.map((edge, index) => (
          <li key={index}>
            <button type="button" class="link mono" onClick={() => props.onSelect(edge[props.end])}>
              {side.graph.nodes[edge[props.end]]?.lines[0]}
            </button>
            {edge.kind !== "call" && <span class="soft"> ({edge.kind})</span>}
            {edge.full.map((line, at) => (
              <div key={at} class="soft mono clip guard">
                {line}
              </div>
            ))}
          </li>
        ))}
      </ul>
    </>
  );
}

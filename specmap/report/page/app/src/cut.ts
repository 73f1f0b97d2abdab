// Which part of the call graph is drawn: one worker, or of all workers their phases and sinks.
import { placeText } from "./context.ts";
import type { Graph, GraphEdge, GraphNode, On, Rank, Side } from "./data.ts";
import type { Settling } from "./settling.ts";

/** What is drawn. Edges name nodes by their index in the graph of the side. */
export interface Cut {
  overview: boolean;
  /** Classes are boxes around their functions. */
  boxed: boolean;
  nodes: number[];
  edges: Pick<GraphEdge, "from" | "to" | "kind" | "labels" | "full">[];
}

/** Whether something belongs to a worker and, with a mask, to one of its phases. */
function belongs(on: readonly On[], worker: number, mask: number): boolean {
  return on.some(([at, phases]) => at === worker && (mask === 0 || phases === 0 || (phases & mask) !== 0));
}

/** Cut the graph of one worker; a mask of 0 takes all phases; `leaves` calls that were not followed too. */
export function ofWorker(graph: Graph, worker: number, mask: number, leaves: boolean): Cut {
  const kept = new Set<number>();
  graph.nodes.forEach((node, index) => {
    if (belongs(node.on, worker, mask) && (leaves || node.kind !== "leaves")) kept.add(index);
  });
  const edges = graph.edges.filter((edge) => kept.has(edge.from) && kept.has(edge.to) && belongs(edge.on, worker, mask));
  return { overview: false, boxed: true, nodes: [...kept], edges };
}

/** Cut the ways of one phase: from what calls the worker to the sinks, and the decisions whose tests are in their conditions. */
export function waysOf(settling: Settling, worker: number, phase: number, mask: number, leaves: boolean): Cut {
  const { side, conditions } = settling;
  const whole = ofWorker(side.graph, worker, mask, leaves);
  const arms = side.workers[worker]?.phases[phase]?.arms ?? [];
  const tests = new Set(arms.flatMap(({ when }) => conditions.atomsOf(when).map((atom) => placeText(side, side.atoms[atom]?.place ?? null))));
  const symbols = new Set(arms.flatMap(({ chain }) => chain.map(({ symbol }) => symbol)));
  const entries = new Set(arms.map(({ chain }) => chain[0]?.symbol));
  const sinks = new Set(arms.map(({ sink }) => sink));
  const at = (node: number) => side.graph.nodes[node];
  const way = new Set(whole.nodes.filter((node) => sinks.has(node) || symbols.has(at(node)?.id ?? "") || at(node)?.phase?.join() === `${worker},${phase}`));
  const kept = new Set(way);
  for (const { from, to, kind } of whole.edges) {
    if (way.has(from) && kind !== "call" && (kind !== "asks" || at(to)?.terms.some(({ place }) => tests.has(placeText(side, place))))) kept.add(to);
    if (entries.has(at(to)?.id ?? "") && at(from)?.kind === "function") kept.add(from);
  }
  return { ...whole, boxed: false, nodes: whole.nodes.filter((node) => kept.has(node)), edges: whole.edges.filter(({ from, to }) => kept.has(from) && kept.has(to)) };
}

/** Phases of all workers and the sinks where they end. */
export function overview(side: Side, mask: number, phases: readonly string[], workers: ReadonlySet<number>): Cut {
  const nodes = new Set<number>();
  const edges: Cut["edges"] = [];
  side.graph.nodes.forEach((node, index) => {
    if (!node.phase) return;
    const phase = side.workers[node.phase[0]]?.phases[node.phase[1]];
    if (!phase || !workers.has(node.phase[0])) return;
    if (mask !== 0 && (mask & (1 << phases.indexOf(phase.name))) === 0) return;
    nodes.add(index);
    for (const sink of new Set(phase.arms.map((arm) => arm.sink))) {
      nodes.add(sink);
      edges.push({ from: index, to: sink, kind: "call", labels: [], full: [] });
    }
  });
  return { overview: true, boxed: false, nodes: [...nodes], edges };
}

/** How the passes of a worker (-1: of all) and a phase ("": of all) end in a sink: one may replay whole for one phase and piecewise for another. */
export function kindsOf(side: Side, sink: number, worker: number, phase: string): string[] {
  const phases = side.workers.flatMap((one, at) => (worker < 0 || at === worker ? one.phases : []));
  const arms = phases.filter(({ name }) => !phase || name === phase).flatMap(({ arms }) => arms);
  return [...new Set(arms.filter((arm) => arm.sink === sink).map(({ kind }) => kind.toUpperCase()))];
}

/** A worker that the node belongs to: the given one where it does, else the first. */
export function workerOf(node: GraphNode, preferred: number): number {
  const at = node.on.map(([worker]) => worker);
  return at.includes(preferred) ? preferred : at[0] ?? preferred;
}

/** What the source says of a phase under the launch, as the phase table has it. */
export function staticWord(side: Side, worker: number, phase: number): string {
  return side.workers[worker]?.phases[phase]?.verdict ?? "";
}

/** How a rank, or with undefined all ranks, ran a phase: its state, mixed, or not exercised. */
export function observedWord(side: Side, worker: number, phase: number, rank: Rank | undefined): string {
  const named = side.workers[worker];
  const one = named?.phases[phase];
  if (!named || !one || !side.run) return "";
  if (!rank) return one.observed?.word ?? "not exercised";
  const ran = rank.phases.find((found) => found.worker === named.name && found.phase === one.name);
  const states = Object.entries(ran?.counts ?? {}).filter(([state, number]) => number > 0 && state !== "CAPTURE");
  return states.length > 1 ? "mixed" : states[0]?.[0] ?? "not exercised";
}

/** Calls of a symbol on a rank, or on all; null where no run counted it. */
export function callsOf(side: Side, symbol: string, rank: Rank | undefined): number | null {
  if (!side.run || !symbol) return null;
  const counts = (rank ? [rank] : side.run.ranks).map((one) => one.calls[symbol]);
  const known = counts.filter((number) => number !== undefined);
  return known.length ? known.reduce((sum, number) => sum + number, 0) : null;
}

// Which part of the call graph is drawn: one worker, or of all workers their phases and sinks.
import type { Graph, GraphEdge, GraphNode, On, Rank, Side } from "./data.ts";

/** What is drawn. Edges name nodes by their index in the graph of the side. */
export interface Cut {
  overview: boolean;
  nodes: number[];
  edges: Pick<GraphEdge, "from" | "to" | "kind" | "labels" | "full">[];
}

/** Whether something belongs to a worker and, with a mask, to one of its phases. */
function belongs(on: readonly On[], worker: number, mask: number): boolean {
  return on.some(([at, phases]) => at === worker && (mask === 0 || phases === 0 || (phases & mask) !== 0));
}

/** Cut the graph of one worker; a mask of 0 takes all phases, `leaves` calls that were not followed too. */
export function ofWorker(graph: Graph, worker: number, mask: number, leaves: boolean): Cut {
  const kept = new Set<number>();
  graph.nodes.forEach((node, index) => {
    if (belongs(node.on, worker, mask) && (leaves || node.kind !== "leaves")) kept.add(index);
  });
  const edges = graph.edges.filter((edge) => kept.has(edge.from) && kept.has(edge.to) && belongs(edge.on, worker, mask));
  return { overview: false, nodes: [...kept], edges };
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
  return { overview: true, nodes: [...nodes], edges };
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

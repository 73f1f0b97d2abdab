/**
 * What the page is given: the shapes that specmap/report/page/*.py writes.
 *
 * The element `specmap-data` holds base64 of gzip of: the length of the JSON in bytes (u32, little-endian), the
 * JSON (UTF-8, one `Page`), zeros up to a multiple of 8, then the columns (`Column.at` counts from there).
 */

export type Verdict = "GRAPH" | "PIECEWISE" | "EAGER" | "NOT_RUN" | "UNKNOWN";
/** How a pass ran. */
export type State = "GRAPH" | "PIECEWISE" | "EAGER" | "PARTIAL" | "CAPTURE";
export type PhaseName = "target_prefill" | "draft_prefill" | "draft" | "verify" | "draft_extend";

export interface Page {
  schema: 1;
  /** The version of specmap that wrote the page. */
  specmap: string;
  /** One side, or two for a comparison (A, then B). */
  sides: Side[];
  /** Of two sides: what differs in their headers. Empty with one side. */
  differences: Difference[];
  /** Of two sides: what changed in the source, as `specmap diff` says it. A line begins with + - ~ or !. */
  changes: { title: string; lines: string[] }[];
  /** Fill and border by verdict word (also "depends"), colour by phase name; for a light background. */
  palette: { verdicts: Record<string, [string, string]>; phases: Record<string, string> };
  /** All phase names; a phase mask has bit i for phases[i]. */
  phases: PhaseName[];
  /** Those of a decode cycle; the others run once a request, and are often eager. */
  cycle: PhaseName[];
}

export interface Difference {
  group: "target" | "launch" | "arguments" | "versions" | "environment" | "machine";
  name: string;
  /** null: the side does not have it. */
  left: string | null;
  right: string | null;
}

/** Whole lines of one file, from 1, `end` included. */
export interface Place {
  file: string;
  line: number;
  end: number;
}

export interface Side {
  /** What people call it: `sglang==0.5.9`, or the name of the run's folder. */
  label: string;
  target: string;
  release: string | null;
  commit: string | null;
  platform: string;
  /** Which modules the map lacks; "" for a whole map. */
  partial: string;
  /** Rows of the header, as text. */
  facts: { name: string; value: string }[];
  headline: Headline;
  /** null: no launch was given. */
  launch: Launch | null;
  workers: Worker[];
  atoms: Atom[];
  /** Conditions, shared parts once. A term comes after the terms that it holds. */
  terms: Term[];
  graph: Graph;
  /** Source text around every place of the page: chunks by file, ascending, apart from each other. */
  sources: Record<string, Chunk[]>;
  findings: Finding[];
  /** Rules that crashed; each is a fault of the rule. */
  crashes: string[];
  /** The rules that `findings` names, by id. */
  rules: Record<string, Rule>;
  /** Whether rewrites were tried for this page; `remedies` is empty where not. */
  tried: boolean;
  remedies: Remedy[];
  /** The rewrites that `remedies` names, and those that the rules of findings ask for, by id. */
  rewrites: Record<string, Rewrite>;
  /** null: no recorded run was given. */
  run: Run | null;
}

export interface Chunk {
  line: number;
  lines: string[];
}

export interface Headline {
  level: "ok" | "warn" | "bad" | "unknown";
  /** One sentence. */
  text: string;
  /** What to do, most important first; may be empty. */
  todo: string[];
  /** More sentences that carry the first; may be empty. */
  because: Reason[];
}

export interface Reason {
  text: string;
  place: Place | null;
}

// The launch

export interface Launch {
  command: string[];
  batchSize: number | null;
  /** What stops the start. */
  refusal: Refusal | null;
  mayRefuse: Refusal[];
  concerns: { kind: string; message: string; place: Place | null; failing: boolean }[];
  expectations: { phase: PhaseName; expected: Verdict; found: Verdict; met: boolean }[];
  assumptions: { key: string; text: string; option: string }[];
  /** What is not known, and would settle something. */
  missing: string[];
  notes: string[];
  settings: Setting[];
  captured: Captured;
}

export interface Refusal {
  error: string;
  message: string;
  place: Place;
  tests: { text: string; place: Place; outcome: string }[];
  reasons: string[];
}

export interface Setting {
  name: string;
  /** The value as text; "" where it is not known. */
  value: string;
  known: boolean;
  /** Where it got its value: `as given`, `default`, or the assignments. */
  origins: { text: string; place: Place | null }[];
}

export interface Captured {
  /** Ascending; null where not known. */
  sizes: number[] | null;
  /** Captured whatever is not known. */
  least: number[];
  reasons: string[];
  /** Requests admitted, least and most. */
  admitted: [number | null, number | null];
  tokensPerRequest: number | null;
  concurrency: number | null;
  steady: number | null;
  share: number | null;
  assumed: boolean;
}

/** One test on the way to a verdict. */
export interface Test {
  text: string;
  place: Place | null;
  value: boolean | null;
  source: Source;
  note: string;
  /** What would settle it. */
  reasons: string[];
  settings: Setting[];
}

/** launch: the release's argument code; size: the captured sizes; stated: the caller; assumed: a steady batch. */
export type Source = "launch" | "size" | "stated" | "assumed" | "unknown";

// The map

export interface Worker {
  id: string;
  name: string;
  place: Place;
  note: string;
  /** runs: this one; may run: a candidate; not run: the launch takes another; open: no launch was given. */
  selection: "runs" | "may run" | "not run" | "open";
  selectedWhen: number;
  selectedAt: Place | null;
  phases: Phase[];
}

export interface Phase {
  name: PhaseName;
  role: string;
  modes: string[];
  place: Place;
  holder: string;
  /** What the source says under the launch; without one, of the map alone. */
  verdict: Verdict | "depends";
  /** Where the verdict rests on what is assumed of a model that is not given. */
  assumed: boolean;
  /** By batch size; empty without a launch. */
  ranges: { first: number; last: number | null; verdict: Verdict; assumed: boolean }[];
  /** One sentence: why, or under which condition. */
  reason: string;
  /** Where the reason stands. */
  evidence: Place | null;
  deciding: Test[];
  open: Test[];
  backend: string;
  /** The worker has a graph for this phase. */
  couldReplay: boolean;
  note: string;
  /** The condition of graph replay in words, cut where it is long. */
  words: string;
  /** Term of the condition of graph replay as the map has it. */
  graphWhen: number;
  /** How the verdict is computed; null where it is `verdict` whatever the tests say. */
  ends: Ends | null;
  /** What is known of each test of the ends before anybody toggles: see `evaluate` below. */
  values: Value[];
  arms: Arm[];
  /** What the ranks of the run did, together; null without a run. */
  observed: Observed | null;
}

/**
 * Terms of the three ends. Each is settled three-valued (true, false, null):
 *   any is null -> UNKNOWN; more than one is true -> UNKNOWN; graph -> GRAPH; piecewise -> PIECEWISE;
 *   eager -> EAGER; none -> NOT_RUN.
 * To settle a term is not Kleene's logic alone: docs/report.md says how, reference.py is the reference.
 */
export interface Ends {
  graph: number;
  piecewise: number;
  eager: number;
}

/** An atom of this phase; `value` null: not known. Atoms with `size` follow the batch size, their value is null. */
export interface Value {
  atom: number;
  value: boolean | null;
  source: Source;
  note: string;
  reasons: string[];
}

export interface Arm {
  kind: "graph" | "piecewise" | "eager";
  when: number;
  /** Index of the sink in graph.nodes. */
  sink: number;
  /** Functions from the worker's entry to the sink, with the line of the call inside each. */
  chain: { symbol: string; line: number }[];
}

/** A number, the batch size, or an operator with what it is applied to. */
export type Computed = number | "bs" | [string, Computed, Computed];
/** A test of the batch size against the captured ones, or one that is computed. */
export type SizeTest = "at most" | "one of" | [string, Computed, Computed];

export interface Atom {
  text: string;
  kind: "launch" | "batch" | "state" | "unknown";
  place: Place | null;
  /** The first atom with the same text and kind: the same test at another place. */
  same: number;
  /** How it compares the batch size with the captured ones, or with numbers; null for any other test. */
  size: SizeTest | null;
  /** Whether the page lets people toggle it. */
  togglable: boolean;
  /** Why it is fixed; "" where it can be toggled. */
  fixed: string;
}

/** The index of an atom, or an operator over indices of terms. ["and"] is true, ["or"] is false. */
export type Term = number | ["and" | "or" | "not", ...number[]];

export interface Graph {
  nodes: GraphNode[];
  edges: GraphEdge[];
  /** Boxes around nodes: the classes. */
  clusters: { id: string; title: string[] }[];
}

/** Worker index and mask of phases (0: of the worker, of no phase in particular). */
export type On = [number, number];

export interface GraphNode {
  /** Unique on the page and stable. */
  id: string;
  kind: "function" | "phase" | "decision" | "sink" | "leaves";
  lines: string[];
  /** Index into clusters, -1 for none. */
  cluster: number;
  /** The same uncut. */
  full: string;
  place: Place | null;
  on: On[];
  /** Verdict word ("depends" too) on phases and sinks, "" on others. */
  verdict: string;
  /** Of a phase node: [worker, phase] indices; null on others. */
  phase: [number, number] | null;
  /** The symbol whose calls the run counted, or "". */
  symbol: string;
  /** Tests of a decision, with the value that lets the graph replay. */
  terms: { text: string; place: Place; graphWhen: boolean }[];
}

export interface GraphEdge {
  from: number;
  to: number;
  kind: "call" | "asks" | "boundary" | "unresolved";
  labels: string[];
  /** Guards and conditions uncut. */
  full: string[];
  on: On[];
}

// Findings and remedies

export interface Finding {
  rule: string;
  severity: "error" | "warning" | "note";
  confidence: "high" | "medium" | "low";
  status: "new" | "suppressed" | "baselined";
  /** Why it was suppressed or accepted. */
  reason: string;
  message: string;
  place: Place;
  holder: string;
  phases: PhaseName[];
  /** Names of worker classes. */
  workers: string[];
  /** A path that few servers take: debug, grammar, logprob; else "". */
  label: string;
  flow: { place: Place; text: string }[];
  related: { place: Place; text: string }[];
  fingerprint: string;
}

export interface Rule {
  id: string;
  name: string;
  summary: string;
  topic: string;
  severity: string;
  confidence: string;
  needs: string;
  fixable: boolean;
  /** Markdown. */
  page: string;
}

export interface Remedy {
  rewrite: string;
  place: Place;
  holder: string;
  what: string;
  /** proposed: its preconditions hold and it was neither applied nor proven here. */
  outcome: "applied" | "refused" | "conflicting" | "failed" | "proposed";
  reason: string;
  facts: string[];
  workers: string[];
  proven: boolean;
  proof: { layer: string; status: "held" | "broken" | "not run"; detail: string }[];
  /** Unified diff, "" where nothing changes. */
  diff: string;
}

export interface Rewrite {
  id: string;
  name: string;
  summary: string;
  safety: "safe" | "review" | "display";
  rules: string[];
  /** Markdown. */
  page: string;
}

// The run

export interface Observed {
  /** The state of all passes but captures; mixed; not exercised. */
  word: State | "mixed" | "not exercised";
  counts: Partial<Record<State, number>>;
  agreement: "agree" | "contradict" | "not exercised" | "open" | "";
  note: string;
  reasons: { text: string; count: number; firstCycle: number; place: Place | null }[];
  /** Part of the CPU time of a cycle, 0..1, the largest of the ranks. */
  share: number | null;
}

export interface Run {
  /** The name of its folder. */
  name: string;
  release: string | null;
  command: string[];
  ranksExpected: number | null;
  failing: boolean;
  findings: RunFinding[];
  notes: string[];
  budget: Budget | null;
  ranks: Rank[];
}

export interface RunFinding {
  problem: string;
  message: string;
  /** Indices of ranks. */
  ranks: number[];
  phase: string;
  cycle: number | null;
  failing: boolean;
}

export interface Budget {
  cycleNs: number;
  requests: number;
  tokensPerCycle: number;
  boundTps: number;
  baselineTps: number | null;
  breakEven: number | null;
  replayedTps: number | null;
  replayedSure: boolean;
  note: string;
}

export interface Rank {
  name: string;
  /** As people say it: `TP 0`, `TP 1, DP 0`. */
  title: string;
  tp: number;
  pp: number;
  dp: number;
  host: string;
  gpu: string;
  /** Which ring recorded: c or python. */
  ring: string;
  finished: boolean;
  records: number;
  cycles: number;
  lost: number;
  firstLoss: number | null;
  captures: number;
  /** Decode cycles: number, median time from one to the next, median CPU time inside, mean batch. */
  decode: { count: number; medianNs: number | null; entryNs: number; requests: number };
  /** SGLang's accept length, null where it counted none. */
  acceptLength: number | null;
  /** Fractions of the cycle time. */
  overhead: { windows: number; cost: number; costError: number; null: number; nullError: number } | null;
  faults: string[];
  missing: { symbol: string; why: string }[];
  phases: RankPhase[];
  syncs: { place: Place | null; label: string; phase: string; count: number; blockedNs: number }[];
  /** Calls by symbol. */
  calls: Record<string, number>;
  timeline: Timeline;
}

export interface RankPhase {
  worker: string;
  phase: string;
  passes: number;
  counts: Partial<Record<State, number>>;
  reasons: { text: string; count: number; firstCycle: number; place: Place | null }[];
  /** Stretches of one state, the first and the last few. */
  stretches: { state: State; first: number; last: number; passes: number }[];
  cpuNs: number;
  medianCpuNs: number;
  medianReplayNs: number | null;
  share: number;
  gpuNs: number;
  gpuPasses: number;
  /** Requests that graphs were replayed with, without and with padding. */
  real: number;
  padded: number;
  graphSizes: number[];
  replays: number;
  /** What a usual pass launched, by state; empty where launches were not counted. */
  launches: string[];
  sizes: { size: number; state: State; passes: number }[];
}

/**
 * All recorded cycles of a rank, and their passes in order: cycle i has passes[i] passes, those of all cycles
 * stand one after the other. Times in microseconds.
 */
export interface Timeline {
  cycles: number;
  passes: number;
  /** What `key` numbers. */
  keys: { worker: string; phase: string }[];
  states: State[];
  /** What `reason` numbers; the first is "". */
  reasons: string[];
  cycle: {
    number: Column;
    /** From the first cycle of all ranks on the same host; of its own first cycle on another. */
    start: Column;
    /** CPU time inside the entry. */
    entry: Column;
    /** Requests; 0: not known. */
    size: Column;
    passes: Column;
    /** 1: not all ranks did the same in it. */
    diverges: Column;
  };
  pass: {
    key: Column;
    state: Column;
    reason: Column;
    /** From the start of its cycle. */
    start: Column;
    cpu: Column;
    /** 0: not known, else the time + 1. */
    gpu: Column;
    /** Requests + 1; 0: not known. */
    size: Column;
    /** Size of the graph + 1; 0: not known or none. */
    graphSize: Column;
    /** Graph launches. */
    replays: Column;
    /** Accepted tokens + 1; 0: not known. */
    accepted: Column;
  };
}

/** Little-endian numbers at `at` of the columns. With `delta` each is the difference to the one before. */
export interface Column {
  at: number;
  count: number;
  type: "u8" | "u16" | "u32" | "f64";
  delta: boolean;
}

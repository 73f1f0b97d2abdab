// Two sides: what differs in their headers first, then verdicts, findings and the run, then the source.
import { useShared } from "./context.ts";
import type { Difference, Phase, Side } from "./data.ts";
import { mayRun } from "./sorting.ts";
import { Chip, None, OtherSizes, Scroll, Section, count, isUsual, plural } from "./ui.tsx";

const GROUPS: Record<Difference["group"], string> = {
  target: "Target",
  launch: "Launch",
  arguments: "Arguments",
  versions: "Versions",
  environment: "Environment",
  machine: "Machine",
};

/** What a side has that lacks a fact of the other one. */
const ABSENT: Record<Difference["group"], string> = {
  target: "not known",
  launch: "none given",
  arguments: "no such argument",
  versions: "not recorded",
  environment: "not set",
  machine: "not recorded",
};

export function Comparison() {
  const { page } = useShared();
  const [left, right] = page.sides;
  if (!left || !right) return null;
  return (
    <Section id="comparison" title="Comparison" note={`A ${left.label} beside B ${right.label}; what differs in the headers comes first`}>
      <div class="stack">
        <Differences found={page.differences} left={left} right={right} />
        <Verdicts left={left} right={right} />
        <Figures left={left} right={right} />
        <Changes changes={page.changes} />
      </div>
    </Section>
  );
}

function Heads({ left, right }: { left: Side; right: Side }) {
  return (
    <>
      <th scope="col">A {left.label}</th>
      <th scope="col">B {right.label}</th>
    </>
  );
}

function Differences({ found, left, right }: { found: Difference[]; left: Side; right: Side }) {
  if (!found.length) return <None>The headers do not differ: same target, arguments, versions and variables, as far as both sides have them.</None>;
  return (
    <Scroll label="Differences of the headers">
      <table class="differences blocks">
        <caption>{plural(found.length, "difference")} in the headers</caption>
        <thead>
          <tr>
            <th scope="col">Where</th>
            <th scope="col">Name</th>
            <Heads left={left} right={right} />
          </tr>
        </thead>
        <tbody>
          {found.map((one, index) => (
            <tr key={index} class={index > 0 && found[index - 1]?.group !== one.group ? "group-start" : ""}>
              <td data-column="Where">{GROUPS[one.group]}</td>
              <th scope="row" class="mono">
                {one.name}
              </th>
              {[one.left, one.right].map((value, at) => (
                <td key={at} class="mono clip" data-column={"AB"[at]}>
                  {value ?? <span class="soft">{ABSENT[one.group]}</span>}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </Scroll>
  );
}

function phaseOf(side: Side, worker: string, phase: string): Phase | undefined {
  return side.workers.find((one) => one.name === worker)?.phases.find((one) => one.name === phase);
}

function Verdicts({ left, right }: { left: Side; right: Side }) {
  const { page } = useShared();
  const names = new Map<string, [string, string]>();
  for (const side of [left, right]) {
    for (const worker of side.workers) for (const phase of worker.phases) names.set(`${worker.name} ${phase.name}`, [worker.name, phase.name]);
  }
  const rows = [...names.values()].map(([worker, phase]) => ({ worker, phase, a: phaseOf(left, worker, phase), b: phaseOf(right, worker, phase) }));
  // A side without a run says nothing about what ran.
  const bothRan = left.run !== null && right.run !== null;
  type Row = (typeof rows)[number];
  const differs = (row: Row) =>
    row.a?.verdict !== row.b?.verdict || (bothRan && row.a?.observed?.word !== row.b?.observed?.word);
  const inPlay = new Set([left, right].flatMap((side) => side.workers.filter((worker) => mayRun(side, worker)).map((worker) => worker.name)));
  const found = rows.filter((row) => differs(row) || inPlay.has(row.worker));
  const shown = [(row: Row) => differs(row) && inPlay.has(row.worker), differs, () => true].reduce<Row[]>((old, wanted) => [...old, ...found.filter((row) => wanted(row) && !old.includes(row))], []);
  if (!shown.length) return null;
  const observed = left.run !== null || right.run !== null;
  const cells = (phase: Phase | undefined, name: string) => (
    <>
      <td data-column={`${name} static`}>
        {phase ? <Chip word={phase.verdict} usual={isUsual(page, phase.name, phase.verdict)} /> : <span class="soft">no such phase</span>}
        {phase && <OtherSizes phase={phase} />}
      </td>
      {observed && <td data-column={`${name} observed`}>{phase?.observed ? <Chip word={phase.observed.word} usual={isUsual(page, phase.name, phase.observed.word)} /> : <span class="soft">no run</span>}</td>}
    </>
  );
  return (
    <Scroll label="Verdicts of A and B" tall>
      <table class="blocks">
        <caption>
          {plural(rows.filter(differs).length, "verdict")} of {count(rows.length)} differ
          {shown.length < rows.length && `; ${count(rows.length - shown.length)} of workers that no side runs are the same and left out`}
        </caption>
        <thead>
          <tr>
            <th scope="col">Worker</th>
            <th scope="col">Phase</th>
            <th scope="col">Differs</th>
            <th scope="col">A static</th>
            {observed && <th scope="col">A observed</th>}
            <th scope="col">B static</th>
            {observed && <th scope="col">B observed</th>}
          </tr>
        </thead>
        <tbody>
          {shown.map((row) => (
            <tr key={`${row.worker} ${row.phase}`}>
              <th scope="row">{row.worker}</th>
              <td data-column="Phase">{row.phase}</td>
              <td data-column="Differs">{differs(row) ? <strong>≠ yes</strong> : <span class="soft">no</span>}</td>
              {cells(row.a, "A")}
              {cells(row.b, "B")}
            </tr>
          ))}
        </tbody>
      </table>
    </Scroll>
  );
}

function ms(ns: number | null | undefined): string {
  return ns === null || ns === undefined ? "–" : `${(ns / 1e6).toFixed(3)} ms`;
}

/** Figures of the two runs; only what both kinds of run have in common. */
function Figures({ left, right }: { left: Side; right: Side }) {
  if (!left.run || !right.run) return null;
  const rows: [string, (side: Side) => string][] = [
    ["ranks", (side) => count(side.run?.ranks.length ?? 0)],
    ["decode cycles, first rank", (side) => count(side.run?.ranks[0]?.decode.count ?? 0)],
    ["median cycle, first rank", (side) => ms(side.run?.ranks[0]?.decode.medianNs)],
    ["mean batch, first rank", (side) => (side.run?.ranks[0]?.decode.requests ?? 0).toFixed(2)],
    ["accept length, first rank", (side) => side.run?.ranks[0]?.acceptLength?.toFixed(2) ?? "–"],
    ["tokens in a cycle", (side) => side.run?.budget?.tokensPerCycle.toFixed(2) ?? "–"],
    ["tokens/s, at most", (side) => (side.run?.budget ? count(Math.round(side.run.budget.boundTps)) : "–")],
  ];
  return (
    <Scroll label="Figures of the two runs">
      <table>
        <caption>The two runs</caption>
        <thead>
          <tr>
            <th scope="col">Figure</th>
            <Heads left={left} right={right} />
          </tr>
        </thead>
        <tbody>
          {rows.map(([name, value]) => (
            <tr key={name}>
              <th scope="row">{name}</th>
              <td>{value(left)}</td>
              <td>{value(right)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </Scroll>
  );
}

const KINDS: Record<string, string> = { "+": "plus", "-": "minus", "!": "minus", "~": "hunk" };

function Changes({ changes }: { changes: { title: string; lines: string[] }[] }) {
  if (!changes.length) return <None>The two sources say the same about the workers.</None>;
  return (
    <>
      <h3>What changed in the source</h3>
      {changes.map((change, index) => (
        <details key={index} open={index === 0}>
          <summary>
            {change.title} ({plural(change.lines.length, "line")})
          </summary>
          <pre class="source" tabIndex={0}>
            {change.lines.map((line, at) => (
              <span key={at} class={`row ${KINDS[line.trimStart()[0] ?? ""] ?? ""}`}>
                {line + "\n"}
              </span>
            ))}
          </pre>
        </details>
      ))}
    </>
  );
}

// The condition explorer: set tests and the batch size, and see verdicts change.
import { useMemo, useRef, useState } from "preact/hooks";
import { placeText, useShared, type Pick } from "./context.ts";
import type { Atom, Phase, PhaseName, Side, Verdict, Worker } from "./data.ts";
import { Fold } from "./fold.tsx";
import { PlaceFold } from "./place.tsx";
import { useSeen } from "./seen.ts";
import { sizeTruth, type Settings, type Settling } from "./settling.ts";
import { mayRun } from "./sorting.ts";
import type { Truth } from "./terms.ts";
import { Chip, Choice, None, Scroll, Section, count, isUsual, plural } from "./ui.tsx";

/** One test of the explorer; several atoms with the same text are one. */
interface Test {
  same: number;
  atom: Atom;
  /** What is known before anybody sets it, by phase; one entry where all phases agree. */
  given: { value: Truth; note: string; reasons: string[] }[];
}

/** The tests of one worker's phases, in the order of the map. */
function testsOf(side: Side, worker: number, phase: string): Test[] {
  const tests = new Map<number, Test>();
  for (const one of side.workers[worker]?.phases ?? []) {
    if (phase && one.name !== phase) continue;
    for (const value of one.values) {
      const atom = side.atoms[value.atom];
      if (!atom) continue;
      const first = side.atoms[atom.same] ?? atom;
      const test = tests.get(atom.same) ?? { same: atom.same, atom: first, given: [] };
      if (!test.given.some((known) => known.value === value.value)) test.given.push(value);
      tests.set(atom.same, test);
    }
  }
  return [...tests.values()].sort((a, b) => a.same - b.same);
}

/** Tests by what they can do under the launch: those that decide it, those that alone change a verdict, the others. */
interface Ranked {
  deciding: ReadonlySet<number>;
  changing: ReadonlySet<number>;
}

function phasesOf(side: Side, pick: Pick): Phase[] {
  return side.workers[pick.worker]?.phases.filter((one) => !pick.phase || one.name === pick.phase) ?? [];
}

function rankedOf(settling: Settling, pick: Pick, tests: readonly Test[], batchSize: number | null): Ranked {
  const { side } = settling;
  const phases = phasesOf(side, pick);
  const deciding = new Set<number>();
  for (const phase of phases) {
    for (const test of [...phase.deciding, ...phase.open]) {
      const alike = phase.values.flatMap(({ atom }) => side.atoms[atom] ?? []).filter(({ text }) => text === test.text);
      const found = alike.find(({ place }) => placeText(side, place) === placeText(side, test.place)) ?? alike[0];
      if (found) deciding.add(found.same);
    }
  }
  const given = phases.map((phase) => settling.verdict(phase, { truths: new Map(), batchSize }));
  const changes = ({ same, given: known }: Test) =>
    [true, false]
      .filter((value) => known.some((one) => one.value !== value))
      .some((value) => phases.some((phase, at) => settling.verdict(phase, { truths: new Map([[same, value]]), batchSize }) !== given[at]));
  return { deciding, changing: new Set(tests.filter((test) => test.atom.togglable && changes(test)).map(({ same }) => same)) };
}

/** Why a choice has no tests. */
function noneOf(side: Side, pick: Pick): string {
  const judged = !side.launch || (!side.launch.refusal && side.workers[pick.worker]?.selection !== "not run");
  return judged ? "No test decides here: every way of this choice ends the same." : "This worker's tests have no values here: the launch does not start, or takes another worker.";
}

/** What a batch size that somebody typed is worth, where that is to be said. */
function remarkOf(side: Side, typed: string, size: number | null): string {
  if (typed && size === null) return "A batch has at least one request: this size is taken as not set.";
  const most = side.launch?.captured.admitted[1] ?? null;
  if (size === null || most === null || size <= most) return "";
  return `This launch admits ${plural(most, "request")} at most: a batch of ${count(size)} does not come about.`;
}

/** The batch size of the phase table: the given one, with a launch else 1. */
export function startOf(side: Side): number | null {
  return side.launch && (side.launch.batchSize ?? 1);
}

export function ConditionExplorer() {
  const { page, side, settling, pick, go } = useShared();
  const start = startOf(side);
  const [truths, setTruths] = useState<ReadonlyMap<number, Truth>>(new Map());
  const [typed, setTyped] = useState(String(start ?? ""));
  const batchSize = /^[1-9]\d*$/.test(typed) ? Number(typed) : null;
  const [words, setWords] = useState("");
  const given = useMemo(() => verdictsOf(settling.side, (phase) => settling.verdict(phase, { truths: new Map(), batchSize: start })), [settling, start]);
  const now = useMemo(() => verdictsOf(settling.side, (phase) => settling.verdict(phase, { truths, batchSize })), [settling, truths, batchSize]);
  const tests = useMemo(() => testsOf(side, pick.worker, pick.phase), [side, pick]);
  const wanted = tests.filter(({ atom }) => words.toLowerCase().split(/\s+/).every((word) => atom.text.toLowerCase().includes(word)));
  const section = useRef<HTMLDivElement>(null);
  const seen = useSeen(section);
  const ranked = useMemo(() => (seen ? rankedOf(settling, pick, tests, start) : null), [seen, settling, pick, tests, start]);
  const first = wanted.filter(({ same }) => ranked?.deciding.has(same));
  const others = wanted.filter(({ same, atom }) => atom.togglable && !ranked?.deciding.has(same));
  const changing = others.filter(({ same }) => ranked?.changing.has(same));
  const idle = others.filter(({ same }) => !ranked?.changing.has(same));
  const fixed = wanted.filter(({ same, atom }) => !atom.togglable && !ranked?.deciding.has(same));
  const free = wanted.filter(({ atom }) => atom.togglable).length;
  const settings = { truths, batchSize };
  const row = (test: Test) =>
    test.atom.togglable ? (
      <Toggle key={test.same} test={test} decides={Boolean(ranked?.deciding.has(test.same))} value={truths.get(test.same)} onSet={(value) => set(test.same, value)} />
    ) : (
      <FixedTest key={test.same} test={test} settings={settings} notes={notesOf(side, pick, test)} />
    );
  const set = (same: number, value: Truth | undefined) => {
    setTruths((old) => {
      const next = new Map(old);
      if (value === undefined) next.delete(same);
      else next.set(same, value);
      return next;
    });
  };
  if (!side.workers.some((worker) => worker.phases.some((phase) => phase.ends))) {
    return (
      <Section id="conditions" title="Conditions">
        <None>No verdict of this map depends on a test, so there is nothing to toggle.</None>
      </Section>
    );
  }
  return (
    <Section id="conditions" title="Conditions" note="what if: set tests and the batch size; the verdicts follow, three-valued, as specmap itself would decide">
      <div class="tools" role="group" aria-label="Condition controls">
        <Choice
          label="Tests of"
          value={String(pick.worker)}
          options={side.workers.flatMap((one, at) => (one.phases.length ? [[String(at), one.name] as const] : []))}
          onChange={(value) => go({ worker: Number(value), phase: pick.phase }, "")}
        />
        <Choice
          label="Phase"
          value={pick.phase}
          options={[["", "all"] as const, ...page.phases.map((name) => [name, name] as const)]}
          onChange={(phase) => go({ worker: pick.worker, phase: phase as PhaseName | "" }, "")}
        />
        <label>
          Batch size
          <input type="number" min={1} step={1} placeholder="not set" value={typed} onInput={(event) => setTyped(event.currentTarget.value || (event.currentTarget.validity.badInput ? "?" : ""))} />
        </label>
        <label>
          Search
          <input type="search" value={words} onInput={(event) => setWords(event.currentTarget.value)} />
        </label>
        <button type="button" disabled={!truths.size && batchSize === start} onClick={() => (setTruths(new Map()), setTyped(String(start ?? "")))}>
          As given
        </button>
      </div>
      <p class="remark" role="status">
        {remarkOf(side, typed, batchSize)}
      </p>
      <div class="columns explorer-columns" ref={section}>
        <Matrix given={given} now={now} />
        <div class="stack">
          <h3 class="no-print">{plural(free, "test")} to set</h3>
          {!wanted.length && (
            <None>{words ? "No test of this choice holds these words." : noneOf(side, pick)}</None>
          )}
          {first.length + changing.length > 0 && <ul class="plain tests">{[...first, ...changing].map(row)}</ul>}
          {idle.length > 0 && (
            <Fold key={`idle ${ranked !== null}`} open={!first.length || words !== "" || idle.some(({ same }) => truths.has(same))} summary={`${plural(idle.length, "test")} that alone ${idle.length === 1 ? "changes" : "change"} no verdict here`}>
              {() => <ul class="plain tests">{idle.map(row)}</ul>}
            </Fold>
          )}
          {fixed.length > 0 && (
            <Fold open={words !== ""} summary={`${plural(fixed.length, "test")} fixed, and why`}>
              {() => <Fixed tests={fixed} side={side} settings={settings} />}
            </Fold>
          )}
        </div>
      </div>
    </Section>
  );
}

type Word = Verdict | "depends";

function verdictsOf(side: Side, verdict: (phase: Side["workers"][number]["phases"][number]) => Word): Word[][] {
  return side.workers.map((worker) => worker.phases.map(verdict));
}

/** Verdicts by worker and phase; what changed keeps what it was. */
function Matrix({ given, now }: { given: Word[][]; now: Word[][] }) {
  const { page, side, pick } = useShared();
  /** Where the phase table says "depends" it is not doubt that leaves a verdict open, but tests that nobody has set. */
  const shown = (word: Word, table: Word | undefined) => (word === "UNKNOWN" && table === "depends" ? "depends" : word);
  const order = side.workers.flatMap((worker, at) => (worker.phases.length ? [at] : [])).sort((a, b) => Number(b === pick.worker) - Number(a === pick.worker) || a - b);
  const running = order.filter((at) => at === pick.worker || mayRun(side, side.workers[at] as Worker));
  const idle = order.filter((at) => !running.includes(at));
  const changed = running.flatMap((at) => now[at]?.filter((word, index) => word !== given[at]?.[index]) ?? []).length;
  const table = (workers: number[], label: string) => (
    <Scroll label={label}>
      <table class="matrix blocks">
        <caption class="hidden-text">{label}</caption>
        <thead>
          <tr>
            <th scope="col">Worker</th>
            {page.phases.map((name) => (
              <th key={name} scope="col">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {workers.map((at) => {
            const worker = side.workers[at];
            return (
              <tr key={at} class={at === pick.worker ? "current" : ""}>
                <th scope="row">{worker?.name}</th>
                {page.phases.map((name) => {
                  const index = worker?.phases.findIndex((phase) => phase.name === name) ?? -1;
                  const [was, is] = [given[at]?.[index], now[at]?.[index]];
                  const table = worker?.phases[index]?.verdict;
                  return (
                    <td key={name} data-worker={at} data-phase={index} data-verdict={is ?? ""} data-column={name}>
                      {is ? <Chip word={shown(is, table)} changed={is !== was} usual={isUsual(page, name, is)} /> : <span class="soft">–</span>}
                      {is && is !== was && <div class="soft small">was {was && shown(was, table)}</div>}
                    </td>
                  );
                })}
              </tr>
            );
          })}
        </tbody>
      </table>
    </Scroll>
  );
  return (
    <div class="stack">
      <h3>
        Verdicts{" "}
        <span class="soft" role="status">
          {changed ? `${count(changed)} changed` : "as given"}
        </span>
      </h3>
      {table(running, "Verdicts under the tests as set")}
      {idle.length > 0 && (
        <Fold summary={`${plural(idle.length, "worker")} that ${idle.length === 1 ? "does" : "do"} not run here`}>
          {() => table(idle, "Verdicts of workers that do not run")}
        </Fold>
      )}
    </div>
  );
}

const VALUES: readonly [Truth, string][] = [
  [true, "true"],
  [false, "false"],
  [null, "unknown"],
];

/** What the launch says of a test that decides, such as the numbers that it compares. */
function notesOf(side: Side, pick: Pick, test: Test): string[] {
  const tests = phasesOf(side, pick).flatMap((phase) => [...phase.deciding, ...phase.open]);
  return [...new Set(tests.filter(({ text, note }) => text === test.atom.text && note).map(({ note }) => note))];
}

/** A test that decides and that nobody can set here. */
function FixedTest({ test, settings, notes }: { test: Test; settings: Settings; notes: string[] }) {
  const { side } = useShared();
  return (
    <li data-test={test.same} class="deciding">
      <div class="test">
        <span class="chip plain">{valueOf(test, side, settings)}</span>
        <div>
          <code class="clip">{test.atom.text}</code> <span class="small decides">decides</span>
          <div class="soft small">{test.atom.size ? "follows the batch size above" : test.atom.fixed}</div>
          {notes.map((note) => (
            <div key={note} class="soft small">
              as given: {note}
            </div>
          ))}
          <PlaceFold side={side} place={test.atom.place} short />
        </div>
      </div>
    </li>
  );
}

function Toggle({ test, decides, value, onSet }: { test: Test; decides: boolean; value: Truth | undefined; onSet: (value: Truth | undefined) => void }) {
  const { side } = useShared();
  const [first] = test.given;
  const given = test.given.length === 1 && first ? first.value : undefined;
  return (
    <li data-test={test.same} class={`${decides ? "deciding" : ""} ${value === undefined ? "" : "chosen"}`}>
      <div class="test">
        <span class="group" role="group" aria-label={test.atom.text}>
          {VALUES.map(([truth, word]) => (
            <button
              key={word}
              type="button"
              class={truth === given ? "given" : ""}
              aria-pressed={value === undefined ? truth === given : truth === value}
              title={truth === given ? "as given" : undefined}
              onClick={() => onSet(truth === given ? undefined : truth)}
            >
              {word}
            </button>
          ))}
        </span>
        <div>
          <code class="clip">{test.atom.text}</code> <span class="soft small">{test.atom.kind}</span>
          {decides && <span class="small decides"> decides</span>}
          {value !== undefined && <span class="small set"> set by you</span>}
          {test.given.map((known, index) => (
            <div key={index} class="soft small">
              {test.given.length > 1 && `${String(known.value ?? "unknown")} in some phases: `}
              {known.note}
            </div>
          ))}
          <PlaceFold side={side} place={test.atom.place} short />
        </div>
      </div>
    </li>
  );
}

/** The value of a test that is fixed, in words. */
function valueOf(test: Test, side: Side, settings: Settings): string {
  const { size } = test.atom;
  const values = size ? [sizeTruth(size, settings.batchSize, side.launch?.captured)] : test.given.map((known) => known.value);
  return values.map((value) => (value === null ? "unknown" : String(value))).join(" or ");
}

function Fixed({ tests, side, settings }: { tests: Test[]; side: Side; settings: Settings }) {
  return (
    <Scroll label="Tests that are fixed">
      <table>
        <thead>
          <tr>
            <th scope="col">Test</th>
            <th scope="col">Value</th>
            <th scope="col">Why it is fixed</th>
            <th scope="col">Place</th>
          </tr>
        </thead>
        <tbody>
          {tests.map((test) => (
            <tr key={test.same}>
              <td class="mono clip">{test.atom.text}</td>
              <td>{valueOf(test, side, settings)}</td>
              <td>{test.atom.size ? "follows the batch size above" : test.atom.fixed}</td>
              <td class="place">{placeText(side, test.atom.place)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </Scroll>
  );
}

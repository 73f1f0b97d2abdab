// The condition explorer: set tests and the batch size, and see verdicts change.
import { useMemo, useState } from "preact/hooks";
import { placeText, useShared } from "./context.ts";
import type { Atom, PhaseName, Side, Verdict } from "./data.ts";
import { Fold } from "./fold.tsx";
import { PlaceFold } from "./place.tsx";
import { sizeTruth, type Settings } from "./settling.ts";
import type { Truth } from "./terms.ts";
import { Chip, Choice, None, Scroll, Section, count, plural } from "./ui.tsx";

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

/** The batch size of the phase table: the given one, with a launch else 1. */
export function startOf(side: Side): number | null {
  return side.launch && (side.launch.batchSize ?? 1);
}

export function ConditionExplorer() {
  const { page, side, settling, pick, go } = useShared();
  const start = startOf(side);
  const [truths, setTruths] = useState<ReadonlyMap<number, Truth>>(new Map());
  const [batchSize, setBatchSize] = useState<number | null>(start);
  const [words, setWords] = useState("");
  const given = useMemo(() => verdictsOf(settling.side, (phase) => settling.verdict(phase, { truths: new Map(), batchSize: start })), [settling, start]);
  const now = useMemo(() => verdictsOf(settling.side, (phase) => settling.verdict(phase, { truths, batchSize })), [settling, truths, batchSize]);
  const tests = useMemo(() => testsOf(side, pick.worker, pick.phase), [side, pick]);
  const wanted = tests.filter(({ atom }) => words.toLowerCase().split(/\s+/).every((word) => atom.text.toLowerCase().includes(word)));
  const free = wanted.filter(({ atom }) => atom.togglable);
  const fixed = wanted.filter(({ atom }) => !atom.togglable);
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
          <input
            type="number"
            min={1}
            step={1}
            placeholder="not set"
            value={batchSize ?? ""}
            onInput={(event) => {
              const size = event.currentTarget.valueAsNumber;
              setBatchSize(Number.isInteger(size) && size > 0 ? size : null);
            }}
          />
        </label>
        <label>
          Search
          <input type="search" value={words} onInput={(event) => setWords(event.currentTarget.value)} />
        </label>
        <button type="button" disabled={!truths.size && batchSize === start} onClick={() => (setTruths(new Map()), setBatchSize(start))}>
          As given
        </button>
      </div>
      <div class="columns explorer-columns">
        <Matrix given={given} now={now} />
        <div class="stack">
          <h3 class="no-print">{plural(free.length, "test")} to set</h3>
          {free.length === 0 && (
            <None>
              {words || fixed.length
                ? "No test of this choice can be set."
                : "This worker's tests have no values here: the launch does not start, or takes another worker."}
            </None>
          )}
          {free.length > 0 && (
            <ul class="plain tests">
              {free.map((test) => (
                <Toggle key={test.same} test={test} value={truths.get(test.same)} onSet={(value) => set(test.same, value)} />
              ))}
            </ul>
          )}
          {fixed.length > 0 && (
            <Fold summary={`${plural(fixed.length, "test")} fixed, and why`}>{() => <Fixed tests={fixed} side={side} settings={{ truths, batchSize }} />}</Fold>
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
  const changed = now.flatMap((row, at) => row.filter((word, index) => word !== given[at]?.[index])).length;
  const order = side.workers.map((_, at) => at).sort((a, b) => Number(b === pick.worker) - Number(a === pick.worker) || a - b);
  return (
    <div class="stack">
      <h3>
        Verdicts{" "}
        <span class="soft" role="status">
          {changed ? `${count(changed)} changed` : "as given"}
        </span>
      </h3>
      <Scroll label="Verdicts under the tests as set">
        <table class="matrix">
          <caption class="hidden-text">Verdicts under the tests as set</caption>
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
            {order.map((at) => {
              const worker = side.workers[at];
              if (!worker?.phases.length) return null;
              return (
                <tr key={at} class={at === pick.worker ? "current" : ""}>
                  <th scope="row">{worker.name}</th>
                  {page.phases.map((name) => {
                    const index = worker.phases.findIndex((phase) => phase.name === name);
                    const [was, is] = [given[at]?.[index], now[at]?.[index]];
                    return (
                      <td key={name} data-worker={at} data-phase={index} data-verdict={is ?? ""}>
                        {is ? <Chip word={shown(is, worker.phases[index]?.verdict)} changed={is !== was} /> : <span class="soft">–</span>}
                        {is && is !== was && <div class="soft small">was {was && shown(was, worker.phases[index]?.verdict)}</div>}
                      </td>
                    );
                  })}
                </tr>
              );
            })}
          </tbody>
        </table>
      </Scroll>
    </div>
  );
}

const VALUES: readonly [Truth, string][] = [
  [true, "true"],
  [false, "false"],
  [null, "unknown"],
];

function Toggle({ test, value, onSet }: { test: Test; value: Truth | undefined; onSet: (value: Truth | undefined) => void }) {
  const { side } = useShared();
  const [first] = test.given;
  const given = test.given.length === 1 && first ? first.value : undefined;
  return (
    <li data-test={test.same} class={value === undefined ? "" : "chosen"}>
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

function Fixed({ tests, side, settings }: { tests: Test[]; side: Side; settings: Settings }) {
  const word = (test: Test) => {
    const { size } = test.atom;
    const values = size ? [sizeTruth(size, settings.batchSize, side.launch?.captured)] : test.given.map((known) => known.value);
    return values.map((value) => (value === null ? "unknown" : String(value))).join(" or ");
  };
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
              <td>{word(test)}</td>
              <td>{test.atom.size ? "follows the batch size above" : test.atom.fixed}</td>
              <td class="place">{placeText(side, test.atom.place)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </Scroll>
  );
}

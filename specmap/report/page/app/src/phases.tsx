// The phase table: what the source says and what the run did, worker by worker.
import { Fragment } from "preact";
import { useMemo, useState } from "preact/hooks";
import { placeText, ran, useShared } from "./context.ts";
import type { Observed, Side, Test } from "./data.ts";
import { Fold } from "./fold.tsx";
import { Excerpt, PlaceFold } from "./place.tsx";
import { mayRun, placeOf, rows, sorted, type Column, type Row } from "./sorting.ts";
import { Chip, Choice, None, OtherSizes, Scroll, Section, count, isUsual, sizes } from "./ui.tsx";

const COLUMNS: readonly [Column, string][] = [
  ["worker", "Worker"],
  ["phase", "Phase"],
  ["static", "Static"],
  ["observed", "Observed"],
  ["reason", "Reason"],
  ["place", "Place"],
  ["share", "CPU time share"],
];

/** What only a run can fill. */
const OF_RUN: ReadonlySet<Column> = new Set<Column>(["observed", "share"]);

export function Phases() {
  const { page, side } = useShared();
  const columns = COLUMNS.filter(([column]) => side.run || !OF_RUN.has(column));
  const [filter, setFilter] = useState({ worker: "", phase: "", words: "" });
  const [order, setOrder] = useState<{ column: Column | ""; down: boolean }>({ column: "", down: false });
  const shown = useMemo(() => sorted(side, rows(side, filter), order.column, order.down), [side, filter, order]);
  const hidden = side.workers.filter((worker) => !mayRun(side, worker)).length;
  const sort = (column: Column) =>
    setOrder((old) => (old.column !== column ? { column, down: false } : old.down ? { column: "", down: false } : { column, down: true }));
  return (
    <Section id="phases" title="Phases" note={side.run ? `source beside run ${side.run.name}` : "from the source; add --run DIR for what a server did"}>
      <div class="tools" role="group" aria-label="Filter phases">
        <Choice
          label="Worker"
          value={filter.worker}
          options={[
            ["", hidden ? "those that may run" : "all"] as const,
            ...(hidden ? [["*", "all"] as const] : []),
            ...side.workers.map((worker, at) => [String(at), worker.name] as const),
          ]}
          onChange={(worker) => setFilter({ ...filter, worker })}
        />
        <Choice
          label="Phase"
          value={filter.phase}
          options={[["", "all"], ...page.phases.map((name) => [name, name] as const)]}
          onChange={(phase) => setFilter({ ...filter, phase })}
        />
        <label>
          Search
          <input type="search" value={filter.words} onInput={(event) => setFilter({ ...filter, words: event.currentTarget.value })} />
        </label>
        <span class="soft" role="status">
          {count(shown.length)} of {count(side.workers.reduce((sum, worker) => sum + worker.phases.length, 0))} rows
        </span>
      </div>
      {shown.length ? (
        <Scroll label="Phases">
          <table class={side.run ? "phases" : "phases unrecorded"}>
            <caption class="hidden-text">Phases of the speculative workers, static and observed</caption>
            <thead>
              <tr>
                {columns.map(([column, title]) => {
                  const active = order.column === column;
                  return (
                    <th key={column} scope="col" aria-sort={active ? (order.down ? "descending" : "ascending") : "none"}>
                      <button type="button" onClick={() => sort(column)}>
                        {title}
                        <span class="order" aria-hidden="true">
                          {active ? (order.down ? "▼" : "▲") : "↕"}
                        </span>
                      </button>
                    </th>
                  );
                })}
              </tr>
            </thead>
            <tbody>
              {shown.map((row, index) => (
                <PhaseRow key={`${row.at} ${row.index}`} row={row} first={shown[index - 1]?.at !== row.at} columns={columns.length} />
              ))}
            </tbody>
          </table>
        </Scroll>
      ) : (
        <None>{side.workers.length ? "No row matches; clear the filters above." : "The source holds no speculative worker: scan a tree that contains SGLang's srt/speculative."}</None>
      )}
    </Section>
  );
}

function PhaseRow({ row, first, columns }: { row: Row; first: boolean; columns: number }) {
  const { page, side } = useShared();
  const [open, setOpen] = useState(false);
  const { worker, phase, at, index } = row;
  const id = `phase-${at}-${index}`;
  const share = phase.observed?.share ?? null;
  const usual = isUsual(page, phase.name, phase.verdict);
  return (
    <>
      <tr class={first ? "group-start" : ""} data-worker={worker.name} data-phase={phase.name}>
        <th scope="row">
          <span class={first ? "" : "hidden-text"}>
            {worker.name}
            {(ran(worker) || worker.selection !== "open") && <div class="soft small">{ran(worker) ? "ran" : worker.selection}</div>}
          </span>
        </th>
        <td class="phase">
          <button type="button" class="quiet twist" aria-expanded={open} aria-controls={id} onClick={() => setOpen(!open)}>
            <span aria-hidden="true">{open ? "▾" : "▸"}</span> {phase.name}
          </button>
        </td>
        <td data-column="static">
          <Chip word={phase.verdict} usual={usual} />
          {usual && <div class="soft small other-sizes">usual: once a request</div>}
          <OtherSizes phase={phase} />
          {phase.assumed && <div class="soft small">model assumed</div>}
        </td>
        {side.run && <td data-column="observed">{phase.observed ? <ObservedChip observed={phase.observed} usual={isUsual(page, phase.name, phase.observed.word)} /> : <span class="soft">–</span>}</td>}
        <td class="reason">
          {phase.observed?.reasons.slice(0, 1).map((reason) => (
            <div key={reason.text}>
              {count(reason.count)} eager in the run: <strong>{reason.text}</strong>
            </div>
          ))}
          <div class="short" title={phase.reason}>
            {phase.reason}
          </div>
        </td>
        <td class="place" title={placeText(side, placeOf(phase))}>
          {placeText(side, placeOf(phase))
            .replace(/^.*\//, "")
            .split(/(?<=_)/)
            .map((part, index) => (
              <Fragment key={index}>
                {part}
                <wbr />
              </Fragment>
            ))}
        </td>
        {side.run && (
          <td data-column="CPU time">
            {share === null ? (
              <span class="soft">–</span>
            ) : (
              <span class="share">
                <span class="number">{(share * 100).toFixed(1)} %</span>
                <meter min={0} max={1} value={share} aria-hidden="true" />
              </span>
            )}
          </td>
        )}
      </tr>
      {open && (
        <tr class="detail" id={id}>
          <td colSpan={columns}>
            <PhaseDetail row={row} side={side} />
          </td>
        </tr>
      )}
    </>
  );
}

function ObservedChip({ observed, usual }: { observed: Observed; usual: boolean }) {
  const counts = Object.entries(observed.counts).map(([state, number]) => `${count(number)} ${state}`);
  return (
    <>
      <Chip word={observed.word} usual={usual} />
      {observed.agreement === "contradict" && <div class="small contradict">contradicts the source</div>}
      {counts.length > 1 && <div class="soft small">{counts.join(", ")}</div>}
    </>
  );
}

function PhaseDetail({ row, side }: { row: Row; side: Side }) {
  const { go } = useShared();
  const { phase, worker, at } = row;
  const pick = { worker: at, phase: phase.name };
  return (
    <div class="columns detail-columns">
      <div class="stack">
        <p>
          <strong>{phase.role} model</strong>, {phase.modes.join(", ")}, in <code>{phase.holder}</code>
        </p>
        <p>{phase.reason}</p>
        {phase.note && <p>{phase.note}</p>}
        {worker.note && <p>{worker.note}</p>}
        {phase.backend && <p>attention backend: {phase.backend}</p>}
        {phase.words && (
          <p>
            graph replay when <code class="clip">{phase.words}</code>
          </p>
        )}
        {phase.ranges.length > 0 && (
          <table class="small-table">
            <caption>By batch size</caption>
            <tbody>
              {phase.ranges.map((range) => (
                <tr key={range.first}>
                  <th scope="row">{sizes(range)}</th>
                  <td>
                    <Chip word={range.verdict} /> {range.assumed && <span class="soft">model assumed</span>}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        )}
        <Tests title="Decided by" tests={phase.deciding} side={side} />
        <Tests title="Still open" tests={phase.open} side={side} />
        {phase.observed && <ObservedDetail observed={phase.observed} side={side} />}
        <p class="no-print">
          <button type="button" onClick={() => go(pick, "graph")}>
            Show in the call graph
          </button>{" "}
          <button type="button" onClick={() => go(pick, "conditions")}>
            Explore its conditions
          </button>
        </p>
      </div>
      <div class="stack">
        <Excerpt side={side} place={placeOf(phase)} />
      </div>
    </div>
  );
}

export function Tests({ title, tests, side }: { title: string; tests: readonly Test[]; side: Side }) {
  if (!tests.length) return null;
  return (
    <Fold summary={`${title} (${tests.length})`} open>
      {() => (
        <ul class="plain stack">
          {tests.map((test, index) => (
            <li key={index}>
              <code class="clip">{test.text}</code> is <strong>{test.value === null ? "unknown" : test.value ? "true" : "false"}</strong>
              {test.note && <span class="soft"> ({test.note})</span>}
              {test.reasons.map((reason) => (
                <div key={reason} class="soft">
                  {reason}
                </div>
              ))}
              <PlaceFold side={side} place={test.place} />
            </li>
          ))}
        </ul>
      )}
    </Fold>
  );
}

function ObservedDetail({ observed, side }: { observed: Observed; side: Side }) {
  return (
    <div class="stack">
      <h3>In the run</h3>
      <p>
        {Object.entries(observed.counts).map(([state, number]) => (
          <span key={state} class="counted">
            <Chip word={state} /> {count(number)}
          </span>
        ))}
        {observed.note}
      </p>
      {observed.reasons.map((reason, index) => (
        <PlaceFold key={index} side={side} place={reason.place} text={`${count(reason.count)} eager because ${reason.text}, first in cycle ${count(reason.firstCycle)}`} />
      ))}
    </div>
  );
}

// What the run says in numbers: per rank and phase, and about the recording itself.
import type { Rank, RankPhase, Run, Side } from "./data.ts";
import { Fold } from "./fold.tsx";
import { PlaceFold } from "./place.tsx";
import { Chip, Scroll, count, plural } from "./ui.tsx";

const us = (ns: number | null) => (ns === null ? "–" : count(Math.round(ns / 1000)));
const percent = (share: number) => `${(share * 100).toFixed(1)} %`;

/** Part of the replayed requests that was padding; null where no graph size was seen. */
export function padding(phase: Pick<RankPhase, "real" | "padded">): number | null {
  return phase.padded > 0 ? (phase.padded - phase.real) / phase.padded : null;
}

export function RunTables({ run, side }: { run: Run; side: Side }) {
  const counted = run.ranks.some((rank) => rank.phases.some((phase) => phase.launches.length));
  const launches = counted ? ["Launches a pass"] : [];
  return (
    <div class="stack run-tables">
      <Budget run={run} />
      <Scroll label="Passes by rank and phase">
        <table>
          <caption>Passes by rank and phase; CPU and replay times are medians, GPU times means of a pass</caption>
          <thead>
            <tr>
              {["Rank", "Phase", "Passes", "Ran", "CPU share", "CPU µs", "Replay µs", "GPU µs", "Padding waste", "Graphs replayed", "Graph sizes", ...launches].map((title) => (
                <th key={title} scope="col">{title}</th>
              ))}
            </tr>
          </thead>
          <tbody>
            {run.ranks.flatMap((rank) => rank.phases.map((phase, index) => <PhaseLine key={`${rank.name} ${index}`} rank={rank} phase={phase} starts={index === 0} counted={counted} />))}
          </tbody>
        </table>
      </Scroll>
      {run.ranks.some((rank) => rank.phases.some((phase) => phase.reasons.length)) && <Reasons run={run} side={side} />}
      {run.ranks.some((rank) => rank.syncs.length) && <Syncs run={run} side={side} />}
      <Recording run={run} />
    </div>
  );
}

function PhaseLine({ rank, phase, starts, counted }: { rank: Rank; phase: RankPhase; starts: boolean; counted: boolean }) {
  const waste = padding(phase);
  return (
    <tr class={starts ? "group-start" : ""}>
      <th scope="row">{rank.title}</th>
      <td>
        {phase.phase} <span class="soft">{phase.worker}</span>
      </td>
      <td class="number">{count(phase.passes)}</td>
      <td>
        {Object.entries(phase.counts).map(([state, number]) => (
          <span key={state} class="counted">
            <Chip word={state} /> {count(number)}
          </span>
        ))}
      </td>
      <td class="number">{percent(phase.share)}</td>
      <td class="number">{us(phase.medianCpuNs)}</td>
      <td class="number">{us(phase.medianReplayNs)}</td>
      <td class="number">{phase.gpuPasses ? us(phase.gpuNs / phase.gpuPasses) : "–"}</td>
      <td class="number">{waste === null ? "–" : percent(waste)}</td>
      <td class="number">{count(phase.replays)}</td>
      <td>{phase.graphSizes.join(", ") || "–"}</td>
      {counted && <td>{phase.launches.join("; ") || "–"}</td>}
    </tr>
  );
}

function Reasons({ run, side }: { run: Run; side: Side }) {
  return (
    <Fold summary="Why passes were eager, by rank">
      {() => (
        <ul class="plain stack">
          {run.ranks.flatMap((rank) =>
            rank.phases.flatMap((phase) =>
              phase.reasons.map((reason, index) => (
                <li key={`${rank.name} ${phase.worker} ${phase.phase} ${index}`}>
                  <PlaceFold side={side} place={reason.place} text={`${rank.title}, ${phase.phase}: ${count(reason.count)} times ${reason.text}, first in cycle ${count(reason.firstCycle)}`} />
                </li>
              )),
            ),
          )}
        </ul>
      )}
    </Fold>
  );
}

function Syncs({ run, side }: { run: Run; side: Side }) {
  return (
    <Fold summary="Host synchronisations seen">
      {() => (
        <Scroll label="Host synchronisations">
          <table>
            <thead>
              <tr>
                {["Rank", "Phase", "What", "Count", "Blocked µs", "Place"].map((title) => (
                  <th key={title} scope="col">{title}</th>
                ))}
              </tr>
            </thead>
            <tbody>
              {run.ranks.flatMap((rank) =>
                rank.syncs.map((sync, index) => (
                  <tr key={`${rank.name} ${index}`}>
                    <th scope="row">{rank.title}</th>
                    <td>{sync.phase}</td>
                    <td>{sync.label}</td>
                    <td class="number">{count(sync.count)}</td>
                    <td class="number">{us(sync.blockedNs)}</td>
                    <td>
                      <PlaceFold side={side} place={sync.place} />
                    </td>
                  </tr>
                )),
              )}
            </tbody>
          </table>
        </Scroll>
      )}
    </Fold>
  );
}

function Budget({ run }: { run: Run }) {
  const { budget } = run;
  if (!budget) return null;
  const tps = (value: number) => `${count(Math.round(value))} tokens/s`;
  const rows: [string, string][] = [
    ["cycle", `${(budget.cycleNs / 1e6).toFixed(3)} ms`],
    ["requests in it", budget.requests.toFixed(2)],
    ["tokens a cycle", budget.tokensPerCycle.toFixed(2)],
  ];
  if (budget.requests) rows.push(["of each request", (budget.tokensPerCycle / budget.requests).toFixed(2)]);
  rows.push(["at most", tps(budget.boundTps)]);
  if (budget.replayedTps !== null) rows.push([budget.replayedSure ? "were all replayed" : "at most, were eager phases free", tps(budget.replayedTps)]);
  if (budget.baselineTps !== null) rows.push(["without speculation", tps(budget.baselineTps)]);
  if (budget.breakEven !== null) rows.push(["breaks even at", `${budget.breakEven.toFixed(2)} tokens a request`]);
  return (
    <div class="panel stack">
      <h3>Budget</h3>
      <dl class="facts">
        {rows.map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      {budget.note && <p class="soft">{budget.note}</p>}
    </div>
  );
}

function Recording({ run }: { run: Run }) {
  const troubled = run.ranks.filter((rank) => rank.lost || rank.faults.length || rank.missing.length || !rank.finished);
  return (
    <Fold summary={`The recording itself: ${troubled.length ? plural(troubled.length, "rank") + " with something to know" : "complete"}`}>
      {() => (
        <>
          <Scroll label="The recording, by rank">
            <table>
              <thead>
                <tr>
                  {["Rank", "Host", "GPU", "Ring", "Records", "Lost", "Cycles", "Captures", "Accept length", "Cost of tracing", "Ended"].map((title) => (
                    <th key={title} scope="col">{title}</th>
                  ))}
                </tr>
              </thead>
              <tbody>
                {run.ranks.map((rank) => (
                  <tr key={rank.name}>
                    <th scope="row">{rank.title}</th>
                    <td>{rank.host}</td>
                    <td>{rank.gpu}</td>
                    <td>{rank.ring}</td>
                    <td class="number">{count(rank.records)}</td>
                    <td class="number">{rank.lost ? `${count(rank.lost)}${rank.firstLoss === null ? "" : `, from cycle ${count(rank.firstLoss)}`}` : "0"}</td>
                    <td class="number">{count(rank.cycles)}</td>
                    <td class="number">{count(rank.captures)}</td>
                    <td class="number">{rank.acceptLength?.toFixed(2) ?? "–"}</td>
                    <td class="number">
                      {rank.overhead ? `${percent(rank.overhead.cost)} ± ${percent(rank.overhead.costError)} (null ${percent(rank.overhead.null)} ± ${percent(rank.overhead.nullError)})` : "not measured"}
                    </td>
                    <td>{rank.finished ? "in order" : "cut off"}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </Scroll>
          <ul>
            {run.ranks.flatMap((rank) => [
              ...rank.faults.map((fault) => <li key={rank.name + fault}>{rank.title}: {fault}</li>),
              ...rank.missing.map((one) => <li key={rank.name + one.symbol}>{rank.title}: <code>{one.symbol}</code> was not wrapped: {one.why}</li>),
            ])}
          </ul>
        </>
      )}
    </Fold>
  );
}

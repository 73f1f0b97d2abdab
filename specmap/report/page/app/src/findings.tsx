// Findings of the lint rules, the run's own findings, and the rewrites that mend them.
import { useState } from "preact/hooks";
import { placeText, useShared } from "./context.ts";
import type { Finding, Remedy, Side } from "./data.ts";
import { Fold } from "./fold.tsx";
import { Markdown } from "./markdown.tsx";
import { Excerpt, PlaceFold } from "./place.tsx";
import { Choice, Diff, None, Section, count, plural } from "./ui.tsx";

const SIGNS: Record<string, string> = { error: "✗", warning: "!", note: "i" };

export function Findings() {
  const { side } = useShared();
  const [status, setStatus] = useState("new");
  const [rule, setRule] = useState("");
  const [worker, setWorker] = useState("");
  const matches = (one: Finding) => (!rule || one.rule === rule) && (!worker || one.workers.includes(worker));
  const shown = side.findings.filter((one) => (status === "all" || one.status === status) && matches(one));
  const kept = side.findings.filter((one) => one.status !== "new").length;
  return (
    <Section id="findings" title="Findings" note={`${count(side.findings.length - kept)} to look at, ${count(kept)} suppressed or accepted before`}>
      {side.crashes.map((crash) => (
        <p key={crash} class="none">
          A rule failed, so what it would have found is missing: {crash}
        </p>
      ))}
      {side.findings.length > 0 && (
        <div class="tools" role="group" aria-label="Filter findings">
          <Choice
            label="Status"
            value={status}
            options={[["new", "to look at"], ["suppressed", "suppressed"], ["baselined", "accepted before"], ["all", "all"]] as const}
            onChange={setStatus}
          />
          <Choice label="Rule" value={rule} options={[["", "all"] as const, ...Object.values(side.rules).map((one) => [one.id, `${one.id} ${one.name}`] as const)]} onChange={setRule} />
          <Choice label="Worker" value={worker} options={[["", "all"] as const, ...side.workers.map((one) => [one.name, one.name] as const)]} onChange={setWorker} />
          <span class="soft" role="status">
            {count(shown.length)} shown
          </span>
        </div>
      )}
      {side.run && side.run.findings.length > 0 && <RunFindings side={side} />}
      {groupsOf(shown).map((group) => (
        <Group key={group[0]?.rule} findings={group} side={side} open={shown.length <= FEW} />
      ))}
      {!shown.length && <None>{side.findings.length ? "No finding of this choice." : "No rule found anything in these sources."}</None>}
      <Remedies side={side} />
    </Section>
  );
}

const FEW = 12;
const WORST = ["error", "warning", "note"];

/** Findings by rule, the rules with the worst findings first. */
function groupsOf(findings: readonly Finding[]): Finding[][] {
  const groups = new Map<string, Finding[]>();
  for (const one of findings) groups.set(one.rule, [...(groups.get(one.rule) ?? []), one]);
  const worst = (group: Finding[]) => Math.min(...group.map((one) => WORST.indexOf(one.severity)));
  return [...groups.values()].sort((a, b) => worst(a) - worst(b));
}

function Severity({ word, number }: { word: string; number?: number }) {
  return (
    <span class={`severity ${word}`}>
      <span aria-hidden="true">{SIGNS[word]}</span> {number === undefined ? word : plural(number, word)}
    </span>
  );
}

function Group({ findings, side, open }: { findings: Finding[]; side: Side; open: boolean }) {
  const [first] = findings;
  const rule = first && side.rules[first.rule];
  const counts = WORST.map((word) => [word, findings.filter((one) => one.severity === word).length] as const).filter(([, number]) => number);
  return (
    <div class="group-of-findings" data-rule={first?.rule}>
      <Fold
        open={open || counts[0]?.[0] === "error"}
        summary={
          <>
            <strong class="ink">
              {first?.rule} {rule?.name}
            </strong>{" "}
            {counts.map(([word, number]) => (
              <span key={word} class="counted">
                <Severity word={word} number={number} />
              </span>
            ))}
            <span class="soft">{rule?.summary}</span>
          </>
        }
      >
        {() => (
          <>
            {rule && <Fold summary={`About ${rule.id} ${rule.name}`}>{() => <Markdown text={rule.page} skip />}</Fold>}
            <ul class="plain findings">
              {findings.map((one) => (
                <li key={one.fingerprint + placeText(side, one.place)}>
                  <OneFinding finding={one} side={side} />
                </li>
              ))}
            </ul>
          </>
        )}
      </Fold>
    </div>
  );
}

function OneFinding({ finding, side }: { finding: Finding; side: Side }) {
  return (
    <Fold
      summary={
        <>
          <Severity word={finding.severity} /> <span class="ink">{finding.message}</span> <span class="mono">{placeText(side, finding.place)}</span>
          {finding.status !== "new" && <span class="chip plain">{finding.status}</span>}
          {finding.label && <span class="chip plain">{finding.label} path</span>}
        </>
      }
    >
      {() => (
        <div class="columns detail-columns">
          <div class="stack">
            <p>
              {finding.confidence} confidence, in <code>{finding.holder}</code>
              {finding.phases.length > 0 && `, ${finding.phases.join(", ")}`}
              {finding.workers.length > 0 && <span class="soft"> ({finding.workers.join(", ")})</span>}
            </p>
            {finding.status !== "new" && (
              <p>
                {finding.status === "suppressed" ? "Suppressed" : "Accepted before"}
                {finding.reason ? `: ${finding.reason}` : ", without a reason"}
              </p>
            )}
            {[...finding.flow, ...finding.related].map((step, index) => (
              <PlaceFold key={index} side={side} place={step.place} text={step.text} />
            ))}
          </div>
          <Excerpt side={side} place={finding.place} />
        </div>
      )}
    </Fold>
  );
}

function RunFindings({ side }: { side: Side }) {
  const run = side.run;
  return (
    <div class="panel stack">
      <h3>In the run</h3>
      <ul class="plain stack">
        {run?.findings.map((one, index) => (
          <li key={index}>
            <span class={`severity ${one.failing ? "error" : "note"}`}>
              <span aria-hidden="true">{one.failing ? "✗" : "i"}</span> {one.problem}
            </span>{" "}
            {one.message}
            <span class="soft">
              {one.ranks.length > 0 && ` ${one.ranks.map((at) => run.ranks[at]?.title).join("; ")}`}
              {one.cycle !== null && `, cycle ${count(one.cycle)}`}
            </span>
          </li>
        ))}
      </ul>
    </div>
  );
}

const OUTCOMES: Record<Remedy["outcome"], string> = {
  applied: "can be applied",
  refused: "refused",
  conflicting: "in conflict with another",
  failed: "failed",
  proposed: "proposed",
};

function Remedies({ side }: { side: Side }) {
  return (
    <div class="stack remedies">
      <h3>Remedies</h3>
      {!side.remedies.length && side.tried && <None>No rewrite of specmap fits these sources.</None>}
      {!side.tried && <Untried side={side} />}
      {side.remedies.map((one, index) => {
        const rewrite = side.rewrites[one.rewrite];
        return (
          <Fold
            key={index}
            summary={
              <>
                <strong>{rewrite?.name ?? one.rewrite}</strong> <span class="ink">{one.what}</span>{" "}
                <span class="chip plain">{OUTCOMES[one.outcome]}</span>{" "}
                {one.outcome !== "refused" && (
                  <span class={`chip ${one.proven ? "graph" : "plain"}`}>
                    <span aria-hidden="true">{one.proven ? "✓" : "–"}</span> {one.proven ? "proven" : "not proven here"}
                  </span>
                )}{" "}
                <span class="mono">{placeText(side, one.place)}</span>
              </>
            }
          >
            {() => <OneRemedy remedy={one} side={side} />}
          </Fold>
        );
      })}
    </div>
  );
}

/** The rewrites that the findings ask for, where none was tried. */
function Untried({ side }: { side: Side }) {
  const known = Object.values(side.rewrites);
  if (!known.length) return <None>No finding of this source has a rewrite.</None>;
  return (
    <>
      <None>
        Not tried for this page: add <code>--fix</code> to this command for the diffs and their proofs. {plural(known.length, "rewrite")} may fit what was found:
      </None>
      {known.map((rewrite) => (
        <Fold
          key={rewrite.id}
          summary={
            <>
              <strong>{rewrite.name}</strong> <span class="ink">{rewrite.summary}</span> <span class="soft">for {rewrite.rules.join(", ")}</span>
            </>
          }
        >
          {() => <Markdown text={rewrite.page} skip />}
        </Fold>
      ))}
    </>
  );
}

function OneRemedy({ remedy, side }: { remedy: Remedy; side: Side }) {
  const rewrite = side.rewrites[remedy.rewrite];
  return (
    <div class="columns detail-columns">
      <div class="stack">
        {rewrite && (
          <p>
            {rewrite.summary} <span class="soft">safety: {rewrite.safety}</span>
          </p>
        )}
        {remedy.reason && <p>{remedy.reason}</p>}
        {remedy.facts.length > 0 && (
          <ul>
            {remedy.facts.map((fact) => (
              <li key={fact}>{fact}</li>
            ))}
          </ul>
        )}
        <h4>Proof record</h4>
        {!remedy.proof.length && <p>No layer ran for this page: `specmap fix` runs them.</p>}
        {remedy.proof.length > 0 && (
          <table class="small-table">
            <caption class="hidden-text">{plural(remedy.proof.length, "layer")} of proof</caption>
            <tbody>
              {remedy.proof.map((layer, index) => (
                <tr key={index}>
                  <th scope="row">{layer.layer}</th>
                  <td>
                    <span aria-hidden="true">{layer.status === "held" ? "✓ " : layer.status === "broken" ? "✗ " : "– "}</span>
                    {layer.status}
                  </td>
                  <td>{layer.detail}</td>
                </tr>
              ))}
            </tbody>
          </table>
        )}
        {rewrite && (
          <Fold summary={`About ${rewrite.name}`}>{() => <Markdown text={rewrite.page} skip />}</Fold>
        )}
      </div>
      {remedy.diff ? <Diff text={remedy.diff} label={`What ${rewrite?.name ?? remedy.rewrite} changes`} /> : <Excerpt side={side} place={remedy.place} />}
    </div>
  );
}

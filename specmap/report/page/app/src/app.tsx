// All sections, and what they share.
import { useCallback, useEffect, useMemo, useState } from "preact/hooks";
import { Comparison } from "./comparison.tsx";
import { ConditionExplorer } from "./explorer.tsx";
import { SharedContext, firstPick, type Pick } from "./context.ts";
import type { Page } from "./data.ts";
import { Findings } from "./findings.tsx";
import { CallGraph } from "./callgraph.tsx";
import { Bar, Facts, Headline, type Stop } from "./header.tsx";
import { Phases } from "./phases.tsx";
import { Settling } from "./settling.ts";
import { Timeline } from "./timeline.tsx";
import type { Columns } from "./unpack.ts";

const STOPS: Stop[] = [
  { id: "phases", title: "Phases" },
  { id: "graph", title: "Call graph" },
  { id: "conditions", title: "Conditions" },
  { id: "timeline", title: "Timeline" },
  { id: "findings", title: "Findings" },
];

/** The id of the section that stands at the top of the window. */
function useHere(stops: readonly Stop[]): string {
  const [here, setHere] = useState("");
  useEffect(() => {
    const look = () => {
      const passed = stops.filter(({ id }) => (document.getElementById(id)?.getBoundingClientRect().top ?? 1e9) < 120);
      setHere(passed.at(-1)?.id ?? "");
    };
    addEventListener("scroll", look, { passive: true });
    return () => removeEventListener("scroll", look);
  }, [stops]);
  return here;
}

export function App({ page, columns }: { page: Page; columns: Columns }) {
  const [shown, setShown] = useState(0);
  const settlings = useMemo(() => page.sides.map((side) => new Settling(side)), [page]);
  const [pick, setPick] = useState<Pick>(() => firstPick(page, page.sides[0]));
  const two = page.sides.length > 1;
  const recorded = Boolean(page.sides[shown]?.run);
  const stops = useMemo(() => {
    const own = STOPS.filter(({ id }) => recorded || id !== "timeline");
    return two ? [{ id: "comparison", title: "Comparison" }, ...own] : own;
  }, [two, recorded]);
  const here = useHere(stops);
  const go = useCallback((to: Pick, section: string) => {
    setPick(to);
    if (section) document.getElementById(section)?.scrollIntoView();
  }, []);
  const side = page.sides[shown];
  const settling = settlings[shown];
  if (!side || !settling) return <p>The page holds no side.</p>;
  const show = (index: number) => {
    setPick(firstPick(page, page.sides[index]));
    setShown(index);
  };
  return (
    <SharedContext.Provider value={{ page, columns, side, settling, pick, go }}>
      <a class="skip" href="#main">
        Skip to the answer
      </a>
      <Bar stops={stops} here={here} sides={page.sides} shown={shown} onSide={show} />
      <main id="main" tabIndex={-1}>
        {page.sides.map((one, index) => (
          <Headline key={index} side={one} name={two ? `${"AB"[index]} ${one.label}` : ""} />
        ))}
        {two && <Comparison />}
        {two && <h2 class="shown-side">{`${"AB"[shown]}: ${side.label}`}</h2>}
        <Facts key={`facts ${shown}`} />
        <Phases key={`phases ${shown}`} />
        <CallGraph key={`graph ${shown}`} />
        <ConditionExplorer key={`conditions ${shown}`} />
        {side.run && <Timeline key={`timeline ${shown}`} run={side.run} />}
        <Findings key={`findings ${shown}`} />
        <footer class="soft">Written by specmap {page.specmap}. This page needs no network.</footer>
      </main>
    </SharedContext.Provider>
  );
}

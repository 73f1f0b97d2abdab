// The timeline of traced cycles: every rank, every phase, painted on one canvas.
import { useCallback, useEffect, useMemo, useRef, useState } from "preact/hooks";
import { useShared } from "./context.ts";
import { CODES, Cycles } from "./cycles.ts";
import type { Run } from "./data.ts";
import { Histograms } from "./histogram.tsx";
import { AXIS, GUTTER, inksOf, paint, rowsOf, type Inks, type Row } from "./paint.ts";
import { RunTables } from "./runtables.tsx";
import { useSeen } from "./seen.ts";
import { Chip, Choice, None, Scroll, Section, count, plural } from "./ui.tsx";
import { panned, within, zoomed, type Window } from "./view.ts";

const MOST_HIGH = 460;
const LEAST_CYCLES = 8;

export function Timeline({ run }: { run: Run }) {
  const { side } = useShared();
  const host = useRef<HTMLDivElement>(null);
  const seen = useSeen(host);
  const cycles = run.ranks.reduce((sum, rank) => sum + rank.timeline.cycles, 0);
  return (
    <Section id="timeline" title="Timeline" note={`run ${run.name}: ${plural(run.ranks.length, "rank")}, ${plural(cycles, "cycle")}; ranks stand below each other by cycle number`}>
      <div ref={host}>
        {cycles === 0 ? <None>The run holds no cycle: the server was not asked anything while it was traced.</None> : seen ? <Lanes run={run} /> : <p class="waiting">Reading the cycles …</p>}
        <RunTables run={run} side={side} />
      </div>
    </Section>
  );
}

interface Cursor {
  row: number;
  cycle: number;
}

/** Everything that one frame is painted from; kept outside of the component's state, for speed. */
interface Stage {
  view: Window;
  scroll: number;
  cursor: Cursor | null;
  inks: Inks | null;
  frame: number;
}

function Lanes({ run }: { run: Run }) {
  const { columns } = useShared();
  const everything = useMemo(() => run.ranks.map((rank) => new Cycles(rank, columns)), [run, columns]);
  const [rankAt, setRankAt] = useState("");
  const all = useMemo(() => (rankAt ? everything.slice(Number(rankAt), Number(rankAt) + 1) : everything), [everything, rankAt]);
  const { rows, height } = useMemo(() => rowsOf(all), [all]);
  const whole = useMemo<Window>(() => {
    const filled = all.filter((one) => one.length);
    return { from: Math.min(...filled.map((one) => one.numbers[0] ?? 0)), to: Math.max(...filled.map((one) => (one.numbers[one.length - 1] ?? 0) + 1)) };
  }, [all]);
  const canvas = useRef<HTMLCanvasElement>(null);
  const stage = useRef<Stage>({ view: whole, scroll: 0, cursor: null, inks: null, frame: 0 }).current;
  const [shown, setShown] = useState<{ view: Window; cursor: Cursor | null }>({ view: whole, cursor: null });
  const settle = useRef<ReturnType<typeof setTimeout>>(undefined);
  const high = Math.min(MOST_HIGH, height + AXIS);

  const draw = useCallback(() => {
    const element = canvas.current;
    const context = element?.getContext("2d");
    if (!element || !context) return;
    const width = element.clientWidth;
    const ratio = devicePixelRatio || 1;
    if (element.width !== Math.round(width * ratio) || element.height !== Math.round(high * ratio)) {
      element.width = Math.round(width * ratio);
      element.height = Math.round(high * ratio);
    }
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    stage.inks ??= inksOf(element.parentElement ?? document.body);
    paint(context, { all, rows, view: stage.view, scroll: stage.scroll, cursor: stage.cursor, width, height: high, inks: stage.inks });
    element.dataset["from"] = String(stage.view.from);
    element.dataset["to"] = String(stage.view.to);
    element.dataset["frames"] = String(Number(element.dataset["frames"] ?? 0) + 1);
  }, [all, rows, high, stage]);

  /** Paint in the next frame, and tell the rest of the page once things stand still. */
  const change = useCallback((next: Partial<Stage>) => {
    Object.assign(stage, next);
    cancelAnimationFrame(stage.frame);
    stage.frame = requestAnimationFrame(draw);
    clearTimeout(settle.current);
    settle.current = setTimeout(() => setShown({ view: stage.view, cursor: stage.cursor }), 120);
  }, [stage, draw]);

  useEffect(() => {
    change({ view: within(stage.view, whole), cursor: null });
    const fresh = () => change({ inks: null });
    const media = matchMedia("(prefers-color-scheme: dark)");
    const sizes = new ResizeObserver(() => change({}));
    if (canvas.current) sizes.observe(canvas.current);
    addEventListener("specmap-theme", fresh);
    media.addEventListener("change", fresh);
    return () => {
      sizes.disconnect();
      removeEventListener("specmap-theme", fresh);
      media.removeEventListener("change", fresh);
    };
  }, [change, stage, whole]);

  const moves = useMoves(all, rows, whole, stage, change);
  useEffect(() => pointer(canvas.current, stage, rows, whole, change), [stage, rows, whole, change]);
  const { cursor } = shown;
  const row = cursor ? rows[cursor.row] : undefined;
  return (
    <>
      <div class="tools" role="group" aria-label="Timeline controls">
        <Choice label="Rank" value={rankAt} options={[["", "all"] as const, ...run.ranks.map((rank, at) => [String(at), rank.title] as const)]} onChange={setRankAt} />
        <span class="group" role="group" aria-label="Zoom the timeline">
          <button type="button" aria-label="Zoom in" onClick={() => moves.zoom(0.5)}>+</button>
          <button type="button" aria-label="Zoom out" onClick={() => moves.zoom(2)}>−</button>
          <button type="button" onClick={moves.all}>All</button>
        </span>
        <span class="group" role="group" aria-label="Eager passes">
          <button type="button" onClick={() => moves.eager(-1)}>◂ eager</button>
          <button type="button" onClick={() => moves.eager(1)}>eager ▸</button>
        </span>
        <button type="button" disabled={!all.some((one) => one.diverges.count(1, 0, one.length))} onClick={moves.divergence}>next divergence ▸</button>
        <label>
          Go to cycle
          <input type="number" min={whole.from} max={whole.to - 1} onChange={(event) => moves.goTo(event.currentTarget.valueAsNumber)} />
        </label>
        <span class="soft">
          cycles {count(Math.floor(shown.view.from))} to {count(Math.ceil(shown.view.to) - 1)}
        </span>
      </div>
      <div class="lanes" onScroll={(event) => change({ scroll: event.currentTarget.scrollTop })} ref={(box) => box?.style.setProperty("height", `${high + 2}px`)}>
        <div ref={(box) => box?.style.setProperty("height", `${height + AXIS}px`)}>
          <canvas
            ref={(element) => {
              canvas.current = element;
              element?.style.setProperty("height", `${high}px`);
            }}
            tabIndex={0}
            role="application"
            aria-label={`Timeline of ${plural(all.length, "rank")}`}
            aria-describedby="timeline-keys"
            onKeyDown={moves.key}
          />
        </div>
      </div>
      <p class="legend soft" id="timeline-keys">
        <span><Chip word="GRAPH" /> low bar</span>
        <span><Chip word="PIECEWISE" /> two thin bars</span>
        <span><Chip word="EAGER" /> from the top, as high as its part of the cycles</span>
        <span><span class="diamond">◆</span> ranks differ</span>
        <span>
          Drag pans; Ctrl and the wheel zoom, after a click the wheel alone. Keys: arrows move, + and − zoom, 0 shows all, N and P go to the next and the
          last eager pass, D to the next divergence.
        </span>
      </p>
      <Detail cycles={row && all[row.rank]} cursor={cursor} />
      <Histograms all={all} rank={row?.rank ?? 0} view={shown.view} />
    </>
  );
}

/** What keys and buttons do. */
function useMoves(all: readonly Cycles[], rows: readonly Row[], whole: Window, stage: Stage, change: (next: Partial<Stage>) => void) {
  return useMemo(() => {
    const firstLane = rows.findIndex((row) => row.kind === "lane");
    const middle = () => (stage.view.from + stage.view.to) / 2;
    const cursor = (): Cursor => stage.cursor ?? { row: firstLane, cycle: Math.floor(middle()) };
    const reveal = (next: Cursor) => {
      const { from, to } = stage.view;
      const off = next.cycle < from || next.cycle + 1 > to ? next.cycle - middle() : 0;
      change({ cursor: next, view: panned(stage.view, off, whole) });
    };
    const zoom = (factor: number) => {
      const at = stage.cursor ? stage.cursor.cycle + 0.5 : middle();
      change({ view: zoomed(stage.view, at, factor, whole, LEAST_CYCLES) });
    };
    const goTo = (cycle: number) => {
      if (!Number.isFinite(cycle)) return;
      const width = Math.min(stage.view.to - stage.view.from, 200);
      const at = Math.min(Math.max(whole.from, Math.round(cycle)), whole.to - 1);
      change({ cursor: { row: cursor().row, cycle: at }, view: within({ from: at - width / 2, to: at + width / 2 }, whole) });
    };
    const step = (by: number) => {
      const now = cursor();
      reveal({ ...now, cycle: Math.min(whole.to - 1, Math.max(whole.from, now.cycle + by)) });
    };
    const lane = (by: 1 | -1) => {
      const now = cursor();
      let at = now.row + by;
      while (rows[at] && rows[at]?.kind !== "lane") at += by;
      if (rows[at]) reveal({ ...now, row: at });
    };
    /** To the nearest cycle with an eager pass in any lane. */
    const eager = (direction: 1 | -1) => {
      const now = cursor();
      const found: Cursor[] = [];
      rows.forEach((row, index) => {
        const cycles = all[row.rank];
        const codes = row.kind === "lane" ? cycles?.lanes[row.lane] : undefined;
        if (!cycles || !codes) return;
        const start = direction > 0 ? cycles.indexOf(now.cycle + 1) - 1 : cycles.indexOf(now.cycle);
        const next = codes.next(CODES.EAGER, start, direction);
        if (next !== undefined) found.push({ row: index, cycle: cycles.numbers[next] ?? 0 });
      });
      const best = found.sort((a, b) => direction * (a.cycle - b.cycle))[0];
      if (best) reveal(best);
    };
    const divergence = () => {
      const now = stage.cursor?.cycle ?? whole.from - 1;
      const next = all.flatMap((cycles) => {
        const at = cycles.diverges.next(1, cycles.indexOf(now + 1) - 1, 1);
        return at === undefined ? [] : [cycles.numbers[at] ?? 0];
      });
      if (next.length) reveal({ row: cursor().row, cycle: Math.min(...next) });
    };
    const keys: Record<string, (event: KeyboardEvent) => void> = {
      ArrowLeft: (event) => step(event.shiftKey ? -Math.ceil((stage.view.to - stage.view.from) / 10) : -1),
      ArrowRight: (event) => step(event.shiftKey ? Math.ceil((stage.view.to - stage.view.from) / 10) : 1),
      ArrowUp: () => lane(-1),
      ArrowDown: () => lane(1),
      Home: () => reveal({ ...cursor(), cycle: whole.from }),
      End: () => reveal({ ...cursor(), cycle: whole.to - 1 }),
      "+": () => zoom(0.5),
      "=": () => zoom(0.5),
      "-": () => zoom(2),
      "0": () => change({ view: whole }),
      n: () => eager(1),
      p: () => eager(-1),
      d: divergence,
    };
    const key = (event: KeyboardEvent) => {
      const act = event.ctrlKey || event.metaKey || event.altKey ? undefined : keys[event.key.length === 1 ? event.key.toLowerCase() : event.key];
      if (!act) return;
      event.preventDefault();
      act(event);
    };
    return { zoom, goTo, eager, divergence, key, all: () => change({ view: whole }) };
  }, [all, rows, whole, stage, change]);
}

/** Drag pans, a click sets the cursor, the wheel zooms when it is asked to. */
function pointer(canvas: HTMLCanvasElement | null, stage: Stage, rows: readonly Row[], whole: Window, change: (next: Partial<Stage>) => void) {
  if (!canvas) return undefined;
  let drag: { x: number; start: number; view: Window } | undefined;
  const cycleAt = (event: MouseEvent) => {
    const { left, width } = canvas.getBoundingClientRect();
    const { from, to } = stage.view;
    return from + ((event.clientX - left - GUTTER) / (width - GUTTER)) * (to - from);
  };
  const rowAt = (event: MouseEvent) => {
    const y = event.clientY - canvas.getBoundingClientRect().top - AXIS + stage.scroll;
    return rows.findIndex((row) => row.top <= y && y < row.top + row.height);
  };
  const wheel = (event: WheelEvent) => {
    const perPixel = (stage.view.to - stage.view.from) / (canvas.clientWidth - GUTTER);
    const sideways = event.shiftKey ? event.deltaY || event.deltaX : event.deltaX;
    if (event.ctrlKey || event.metaKey || (document.activeElement === canvas && !event.shiftKey && Math.abs(event.deltaY) > Math.abs(event.deltaX))) {
      const factor = Math.exp(event.deltaY * (event.deltaMode ? 0.06 : 0.002));
      change({ view: zoomed(stage.view, cycleAt(event), factor, whole, LEAST_CYCLES) });
    } else if (sideways) change({ view: panned(stage.view, sideways * perPixel, whole) });
    else return;
    event.preventDefault();
  };
  const move = (event: PointerEvent) => {
    if (!drag) return;
    const perPixel = (drag.view.to - drag.view.from) / (canvas.clientWidth - GUTTER);
    change({ view: panned(drag.view, (drag.x - event.clientX) * perPixel, whole) });
  };
  const up = (event: PointerEvent) => {
    removeEventListener("pointermove", move);
    removeEventListener("pointerup", up);
    if (drag && Math.abs(event.clientX - drag.x) < 3) {
      const row = rowAt(event);
      const cycle = Math.floor(cycleAt(event));
      if (row >= 0 && cycle >= whole.from && cycle < whole.to) change({ cursor: { row, cycle } });
    }
    drag = undefined;
  };
  const down = (event: PointerEvent) => {
    if (event.button !== 0) return;
    drag = { x: event.clientX, start: event.clientX, view: stage.view };
    addEventListener("pointermove", move);
    addEventListener("pointerup", up);
  };
  canvas.addEventListener("wheel", wheel, { passive: false });
  canvas.addEventListener("pointerdown", down);
  return () => {
    canvas.removeEventListener("wheel", wheel);
    canvas.removeEventListener("pointerdown", down);
    removeEventListener("pointermove", move);
    removeEventListener("pointerup", up);
  };
}

/** The passes of the cycle under the cursor. */
function Detail({ cycles, cursor }: { cycles: Cycles | undefined; cursor: Cursor | null }) {
  if (!cycles || !cursor) return <p class="soft cycle" role="status">Click a cycle, or move with the arrow keys, to see its passes.</p>;
  const index = cycles.indexOf(cursor.cycle);
  if (cycles.numbers[index] !== cursor.cycle) {
    return <p class="cycle" role="status">{cycles.rank.title} recorded no cycle {count(cursor.cycle)}: it was idle, or the record was lost.</p>;
  }
  const size = cycles.cycle("size")[index] ?? 0;
  const number = (value: number | null) => (value === null ? <span class="soft">–</span> : count(value));
  return (
    <div class="panel cycle stack" data-cycle={cursor.cycle}>
      <p role="status">
        <strong>{cycles.rank.title}, cycle {count(cursor.cycle)}</strong>: {size ? plural(size, "request") : "requests not known"}, {count(cycles.cycle("entry")[index] ?? 0)} µs of CPU time
        {cycles.diverges.codes[index] ? <strong class="contradict"> ◆ the ranks did not all do the same</strong> : ""}
      </p>
      <Scroll label="Passes of the cycle">
        <table>
          <thead>
            <tr>
              {["Phase", "Ran", "Why eager", "Start µs", "CPU µs", "GPU µs", "Requests", "Graph size", "Graph launches", "Accepted"].map((title) => (
                <th key={title} scope="col">{title}</th>
              ))}
            </tr>
          </thead>
          <tbody>
            {cycles.passesOf(index).map((pass, at) => (
              <tr key={at}>
                <th scope="row">{pass.phase} <span class="soft">{pass.worker}</span></th>
                <td><Chip word={pass.state} /></td>
                <td class="mono clip">{pass.reason}</td>
                <td class="number">{number(pass.startUs)}</td>
                <td class="number">{number(pass.cpuUs)}</td>
                <td class="number">{number(pass.gpuUs)}</td>
                <td class="number">{number(pass.size)}</td>
                <td class="number">
                  {number(pass.graphSize)}
                  {pass.graphSize !== null && pass.size !== null && pass.graphSize > pass.size && <span class="soft"> (+{pass.graphSize - pass.size} padding)</span>}
                </td>
                <td class="number">{number(pass.replays)}</td>
                <td class="number">{number(pass.accepted)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </Scroll>
    </div>
  );
}

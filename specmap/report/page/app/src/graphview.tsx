// The drawing of the call graph: zoom, pan, and a node for the keyboard to stand on.
import { useCallback, useEffect, useImperativeHandle, useMemo, useRef } from "preact/hooks";
import type { Ref } from "preact";
import type { Cut } from "./cut.ts";
import type { Graph } from "./data.ts";
import { neighbour, type Drawing } from "./drawing.ts";
import { brief } from "./dot.ts";
import { arrow } from "./splines.ts";
import { verdictLook } from "./ui.tsx";

/** How a node is drawn, beside its place. */
export interface Look {
  lines: readonly string[];
  kind: string;
  /** Verdict word, "" for none. */
  verdict: string;
  /** The verdict tells no loss here. */
  usual: boolean;
  /** Of `lines`, those that are said less loudly: this one and those after it. */
  soft: number;
  /** Extra class: ran, silent. */
  state: string;
}

export interface GraphHandle {
  zoom: (factor: number) => void;
  fit: () => void;
  show: (node: number) => void;
}

interface Props {
  graph: Graph;
  cut: Cut;
  drawing: Drawing;
  look: (node: number) => Look;
  selected: number | null;
  matches: ReadonlySet<number>;
  onSelect: (node: number) => void;
  handle: Ref<GraphHandle>;
}

export const LINE = 15;
export const TITLE_LINE = 14;
export const LABEL_LINE = 12;
const STEP = 1.25;
export const READABLE = 0.7;
const NOWHERE = { at: { x: 0, y: 0 } };
const ARROWS: Record<string, readonly [number, number]> = {
  ArrowLeft: [-1, 0],
  ArrowRight: [1, 0],
  ArrowUp: [0, -1],
  ArrowDown: [0, 1],
};

/** Moves and scales the group inside the svg without drawing it again. */
class Camera {
  x = 0;
  y = 0;
  scale = 1;

  apply(group: SVGGElement | null): void {
    group?.setAttribute("transform", `translate(${this.x} ${this.y}) scale(${this.scale})`);
  }

  zoom(factor: number, x: number, y: number): void {
    const scale = Math.min(4, Math.max(0.08, this.scale * factor));
    this.x = x - ((x - this.x) * scale) / this.scale;
    this.y = y - ((y - this.y) * scale) / this.scale;
    this.scale = scale;
  }

  fit(drawing: Drawing, width: number, height: number): void {
    this.scale = Math.min(1.1, (width - 24) / drawing.width, (height - 24) / drawing.height);
    this.x = (width - drawing.width * this.scale) / 2;
    this.y = (height - drawing.height * this.scale) / 2;
  }

  /** All of it where that can be read, else its first node at the top. */
  start(drawing: Drawing, width: number, height: number): void {
    this.fit(drawing, width, height);
    if (this.scale >= READABLE) return;
    this.scale = READABLE;
    const top = drawing.nodes.reduce((best, one) => (one.at.y < best.at.y ? one : best), drawing.nodes[0] ?? NOWHERE);
    this.x = width / 2 - top.at.x * READABLE;
    this.y = 12;
  }
}

export function GraphView(props: Props) {
  const { drawing, selected, handle, onSelect } = props;
  const svg = useRef<SVGSVGElement>(null);
  const group = useRef<SVGGElement>(null);
  const camera = useRef(new Camera()).current;
  const apply = useCallback(() => camera.apply(group.current), [camera]);
  const size = () => svg.current?.getBoundingClientRect() ?? { width: 800, height: 500, left: 0, top: 0 };

  const fit = useCallback(() => {
    camera.fit(drawing, size().width, size().height);
    apply();
  }, [drawing, camera, apply]);
  const zoom = useCallback((factor: number) => {
    camera.zoom(factor, size().width / 2, size().height / 2);
    apply();
  }, [camera, apply]);
  const show = useCallback((node: number) => {
    const found = drawing.nodes.find((one) => one.node === node);
    if (!found) return;
    camera.scale = Math.max(camera.scale, 0.8);
    camera.x = size().width / 2 - found.at.x * camera.scale;
    camera.y = size().height / 2 - found.at.y * camera.scale;
    apply();
  }, [drawing, camera, apply]);

  useEffect(() => {
    camera.start(drawing, size().width, size().height);
    apply();
  }, [drawing, camera, apply]);
  useImperativeHandle(handle, () => ({ zoom, fit, show }), [zoom, fit, show]);
  useEffect(() => wheelAndDrag(svg.current, camera, apply), [camera, apply]);

  const stand = selected !== null && drawing.nodes.some(({ node }) => node === selected) ? selected : drawing.nodes[0]?.node;
  const onKey = (event: KeyboardEvent) => {
    const direction = ARROWS[event.key];
    if (event.key === "+" || event.key === "=") zoom(STEP);
    else if (event.key === "-") zoom(1 / STEP);
    else if (event.key === "0") fit();
    else if (direction && stand !== undefined) {
      const next = neighbour(drawing, stand, ...direction);
      if (next === undefined) return;
      onSelect(next);
      keepInSight(next);
      svg.current?.querySelector<SVGGElement>(`[data-node="${next}"]`)?.focus({ preventScroll: true });
    } else return;
    event.preventDefault();
  };
  const keepInSight = (node: number) => {
    const found = drawing.nodes.find((one) => one.node === node);
    if (!found) return;
    const { width, height } = size();
    const [x, y] = [found.at.x * camera.scale + camera.x, found.at.y * camera.scale + camera.y];
    if (x < 60 || y < 30 || x > width - 60 || y > height - 30) show(node);
  };

  return (
    <svg ref={svg} class="graph" role="group" aria-label="Call graph; arrow keys walk along it, plus, minus and 0 zoom" onKeyDown={onKey}>
      <g ref={group}>
        <Picture {...props} stand={stand ?? -1} />
      </g>
    </svg>
  );
}

/** Everything inside the camera; drawn again only when what it shows changes. */
function Picture({ graph, cut, drawing, look, selected, matches, onSelect, stand }: Props & { stand: number }) {
  const fixed = useMemo(() => <Links graph={graph} cut={cut} drawing={drawing} />, [graph, cut, drawing]);
  return (
    <>
      {fixed}
      {drawing.nodes.map((box) => (
        <Box
          key={box.node}
          box={box}
          look={look(box.node)}
          selected={box.node === selected}
          matched={matches.has(box.node)}
          stands={box.node === stand}
          onSelect={() => onSelect(box.node)}
        />
      ))}
    </>
  );
}

function Links({ graph, cut, drawing }: { graph: Graph; cut: Cut; drawing: Drawing }) {
  return (
    <g aria-hidden="true">
      {drawing.clusters.map((box) => (
        <g key={box.cluster} class="cluster">
          <rect x={box.x} y={box.y} width={box.width} height={box.height} rx="5" />
        </g>
      ))}
      {drawing.edges.map((found) => {
        const edge = cut.edges[found.index];
        if (!edge) return null;
        const lines = brief(edge.labels);
        return (
          <g key={found.index} class={`edge ${edge.kind}`}>
            <path d={found.path}>{edge.full.length > 0 && <title>{edge.full.join("\n")}</title>}</path>
            {found.tip && found.base && <polygon points={arrow(found.base, found.tip)} />}
            {found.label && lines.map((line, index) => (
              <text key={index} x={found.label?.x} y={(found.label?.y ?? 0) + (index - (lines.length - 1) / 2) * LABEL_LINE + 3} text-anchor="middle">
                {line}
              </text>
            ))}
          </g>
        );
      })}
      {drawing.clusters.map((box) => (
        <g key={box.cluster} class="cluster">
          {(graph.clusters[box.cluster]?.title ?? []).map((line, index) => (
            <text key={index} x={box.x + 8} y={box.y + 15 + index * TITLE_LINE}>
              {line}
            </text>
          ))}
        </g>
      ))}
    </g>
  );
}

interface BoxProps {
  box: Drawing["nodes"][number];
  look: Look;
  selected: boolean;
  matched: boolean;
  stands: boolean;
  onSelect: () => void;
}

function Box({ box, look, selected, matched, stands, onSelect }: BoxProps) {
  const { at, width, height } = box;
  const [left, top] = [at.x - width / 2, at.y - height / 2];
  const verdict = look.verdict ? verdictLook(look.verdict) : undefined;
  const css = ["node", look.kind, look.state, look.usual ? "usual" : verdict?.css ?? "", selected ? "selected" : "", matched ? "matched" : ""];
  const lines = verdict ? [...look.lines, `${verdict.sign} ${look.verdict}`] : look.lines;
  const onKey = (event: KeyboardEvent) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    onSelect();
  };
  return (
    <g
      class={css.filter(Boolean).join(" ")}
      role="button"
      tabindex={stands ? 0 : -1}
      aria-pressed={selected}
      data-node={box.node}
      onClick={onSelect}
      onKeyDown={onKey}
    >
      <rect x={left} y={top} width={width} height={height} rx={look.kind === "sink" ? 11 : look.kind === "decision" ? 0 : 4} />
      {lines.map((line, index) => (
        <text
          key={index}
          x={at.x}
          y={at.y + (index - (lines.length - 1) / 2) * LINE + 4}
          text-anchor="middle"
          class={verdict && index === lines.length - 1 ? "verdict" : index === 0 ? "first" : index >= look.soft ? "quiet" : ""}
        >
          {line + " "}
        </text>
      ))}
    </g>
  );
}

/** Let the pointer drag, and the wheel zoom once the drawing has the focus or with Ctrl. */
function wheelAndDrag(svg: SVGSVGElement | null, camera: Camera, apply: () => void): (() => void) | undefined {
  if (!svg) return undefined;
  let drag: { x: number; y: number } | undefined;
  const wheel = (event: WheelEvent) => {
    if (!event.ctrlKey && !event.metaKey && !svg.contains(document.activeElement)) return;
    event.preventDefault();
    const { left, top } = svg.getBoundingClientRect();
    camera.zoom(Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.0016)), event.clientX - left, event.clientY - top);
    apply();
  };
  const move = (event: PointerEvent) => {
    if (!drag) return;
    camera.x += event.clientX - drag.x;
    camera.y += event.clientY - drag.y;
    drag = { x: event.clientX, y: event.clientY };
    apply();
  };
  const up = () => {
    drag = undefined;
    svg.classList.remove("dragged");
    removeEventListener("pointermove", move);
    removeEventListener("pointerup", up);
  };
  const down = (event: PointerEvent) => {
    if (event.button !== 0) return;
    drag = { x: event.clientX, y: event.clientY };
    svg.classList.add("dragged");
    addEventListener("pointermove", move);
    addEventListener("pointerup", up);
  };
  svg.addEventListener("wheel", wheel, { passive: false });
  svg.addEventListener("pointerdown", down);
  return () => {
    svg.removeEventListener("wheel", wheel);
    svg.removeEventListener("pointerdown", down);
    up();
  };
}

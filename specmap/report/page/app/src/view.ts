// A window onto something larger: zooming about a point and panning, kept within bounds.

export interface Window {
  from: number;
  to: number;
}

/** Zoom about `at`; a factor below 1 comes nearer. The window keeps at least `least` units. */
export function zoomed(view: Window, at: number, factor: number, whole: Window, least: number): Window {
  const width = Math.min(whole.to - whole.from, Math.max(least, (view.to - view.from) * factor));
  const share = (at - view.from) / (view.to - view.from || 1);
  return within({ from: at - share * width, to: at + (1 - share) * width }, whole);
}

/** Move by a distance, as far as the whole allows. */
export function panned(view: Window, distance: number, whole: Window): Window {
  return within({ from: view.from + distance, to: view.to + distance }, whole);
}

/** Return the window moved, and where it must be narrowed, to lie within the whole. */
export function within(view: Window, whole: Window): Window {
  const width = Math.min(view.to - view.from, whole.to - whole.from);
  const from = Math.max(whole.from, Math.min(view.from, whole.to - width));
  return { from, to: from + width };
}

/** Round steps for an axis: about `count` of them, at 1, 2 or 5 times a power of ten. */
export function ticks(view: Window, count: number): number[] {
  const raw = (view.to - view.from) / Math.max(1, count);
  const power = 10 ** Math.floor(Math.log10(Math.max(raw, 1)));
  const step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= raw) ?? power * 10;
  const found = [];
  for (let at = Math.ceil(view.from / step) * step; at <= view.to; at += step) found.push(at);
  return found;
}

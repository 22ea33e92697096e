// Line charts in SVG, drawn to the width they have.

import { el, svg } from "./dom.js";

const TOP = 12;
const RIGHT = 14;
const BOTTOM = 40;

/** Round numbers from low to high, about `count` of them. */
export function ticks(low, high, count) {
  const rough = (high - low) / count || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((one) => one * power).find((one) => one >= rough * 0.999);
  const list = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; i++) list.push(Number((i * step).toPrecision(12)));
  return list;
}

/** Powers of ten, and 2 and 5 times them where there are few. */
function decades(low, high) {
  const list = [];
  const parts = high / low < 300 ? [1, 2, 5] : [1];
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power++) {
    list.push(...parts.map((part) => Number((part * 10 ** power).toPrecision(3))));
  }
  return list.filter((value) => value >= low * 0.999 && value <= high * 1.001);
}

/**
 * A chart in `host`. Its `draw` takes
 *   series: [{points: [[x, y], ...], kind}], drawn last to first; `kind`: classes of style.css,
 *     of which "area" fills below the line, and "dots" draws no line at all
 *   x, y: {label, low, high, log, format, ticks}; what is missing is taken from the points
 *   mark: an x for an upright line, with a dot on each series; bands: [[from, to], ...] in x
 *   note: a remark in the upper corner
 *   text: the alternative, with its numbers; empty: what to say without points
 */
export function chart(host, height = 190) {
  let last = null;
  const readout = el("p", { class: "readout", "aria-hidden": "true" });
  const place = el("div", { class: "plot" });
  host.replaceChildren(place, readout);
  const draw = (options) => {
    last = options;
    render(place, height, options);
  };
  new ResizeObserver(() => last && draw(last)).observe(host);
  place.addEventListener("pointermove", (event) => last && point(place, readout, last, event));
  place.addEventListener("pointerleave", () => {
    readout.textContent = "";
    place.querySelector(".cross")?.setAttribute("visibility", "hidden");
  });
  return draw;
}

function range(series, axis, index) {
  let { low, high } = axis;
  if (low === undefined || high === undefined) {
    let [least, most] = [Infinity, -Infinity];
    for (const { points } of series) {
      for (const one of points) {
        const value = one[index];
        if (value === null || (axis.log && !(value > 0))) continue;
        least = Math.min(least, value);
        most = Math.max(most, value);
      }
    }
    low ??= least;
    high ??= most;
  }
  if (axis.log) {
    low = 10 ** (Math.floor(2 * Math.log10(low)) / 2);
    high = 10 ** (Math.ceil(2 * Math.log10(high)) / 2);
    if (high / low < 10) high = low * 10;
  } else if (high <= low) high = low + (Math.abs(low) || 1);
  return [low, high];
}

function scales(place, height, { series, x, y }) {
  const width = Math.max(200, place.clientWidth);
  const [left, right, bottom] = [y.room ?? 46, width - RIGHT, height - BOTTOM];
  const [x0, x1] = range(series, x, 0);
  let [y0, y1] = range(series, y, 1);
  if (!y.log && y.high === undefined) y1 = y0 + (y1 - y0) * 1.15;
  const log = (value) => Math.log10(Math.max(value, y0 / 10));
  const [l0, l1] = y.log ? [log(y0), log(y1)] : [0, 0];
  const toX = (value) => left + ((right - left) * (value - x0)) / (x1 - x0);
  const toY = (value) => Math.max(TOP, bottom - (bottom - TOP) * (y.log ? (log(value) - l0) / (l1 - l0) : (value - y0) / (y1 - y0)));
  return { width, left, right, bottom, x0, x1, y0, y1, toX, toY };
}

function render(place, height, options) {
  const { series, x, y, mark, note, bands = [], text: alternative, empty } = options;
  if (!place.clientWidth) return;
  if (!series.some(({ points }) => points.length)) {
    place.replaceChildren(el("p", { class: "no-points", text: empty ?? "Nothing to draw yet." }));
    return;
  }
  const s = scales(place, height, options);
  const short = (value) => Math.round(value * 10) / 10;
  const root = svg("svg", { width: s.width, height, viewBox: `0 0 ${s.width} ${height}`, role: "img", "aria-label": alternative });
  for (const [from, to] of bands) {
    const [a, b] = [Math.max(s.left, s.toX(from)), Math.min(s.right, s.toX(to))];
    if (b > a) root.append(svg("rect", { class: "band", x: a, y: TOP, width: b - a, height: s.bottom - TOP }));
  }
  const rows = y.ticks ?? (y.log ? decades(s.y0, s.y1) : ticks(s.y0, s.y1, 4));
  for (const value of rows) {
    const at = short(s.toY(value));
    if (at < TOP - 1) continue;
    root.append(svg("line", { class: "grid", x1: s.left, x2: s.right, y1: at, y2: at }));
    root.append(svg("text", { class: "tick", x: s.left - 8, y: at + 4, "text-anchor": "end", text: (y.format ?? String)(value) }));
  }
  for (const value of x.ticks ?? ticks(s.x0, s.x1, s.width / 90)) {
    const at = short(s.toX(value));
    const text = (x.format ?? String)(value);
    const anchor = text.length < 6 ? "middle" : at > s.right - 20 ? "end" : at < s.left + 20 ? "start" : "middle";
    root.append(svg("text", { class: "tick", x: at, y: s.bottom + 16, "text-anchor": anchor, text }));
  }
  root.append(svg("line", { class: "axis", x1: s.left, x2: s.right, y1: s.bottom, y2: s.bottom }));
  root.append(svg("text", { class: "label", x: s.right, y: height - 5, "text-anchor": "end", text: x.label }));
  for (const { points, kind } of [...series].reverse()) line(root, s, points.filter(([, value]) => value !== null), kind);
  if (mark !== undefined) {
    root.append(svg("line", { class: "mark", x1: s.toX(mark), x2: s.toX(mark), y1: TOP, y2: s.bottom }));
    for (const { points, kind } of series) {
      const value = interpolate(points, mark);
      if (value !== null) root.append(svg("circle", { class: `knob ${kind}`, cx: s.toX(mark), cy: s.toY(value), r: 5 }));
    }
  }
  if (note) root.append(svg("text", { class: "note", x: s.left + 6, y: TOP + 4, text: note }));
  root.append(svg("line", { class: "cross", y1: TOP, y2: s.bottom, visibility: "hidden" }));
  place.replaceChildren(root);
}

function line(root, s, points, kind) {
  if (!points.length) return;
  if (kind.includes("dots")) {
    for (const [x, y] of points) root.append(svg("circle", { class: `spot ${kind}`, cx: s.toX(x).toFixed(1), cy: s.toY(y).toFixed(1), r: 1.6 }));
    return;
  }
  const at = points.map(([x, y]) => `${s.toX(x).toFixed(1)},${s.toY(y).toFixed(1)}`);
  if (kind.includes("area") && points.length > 1) {
    const [from, to] = [points[0], points[points.length - 1]].map(([x]) => s.toX(x).toFixed(1));
    root.append(svg("polygon", { class: `under ${kind}`, points: `${from},${s.bottom} ${at.join(" ")} ${to},${s.bottom}` }));
  }
  root.append(svg("polyline", { class: `line ${kind}`, points: at.join(" ") }));
  const [cx, cy] = at[at.length - 1].split(",");
  root.append(svg("circle", { class: `end ${kind}`, cx, cy, r: 3.5 }));
}

/** The value of a series at x, between its points; null where there is none. */
export function interpolate(points, x) {
  const known = points.filter(([, value]) => value !== null);
  if (!known.length) return null;
  const after = known.findIndex(([at]) => at >= x);
  if (after < 0) return known[known.length - 1][1];
  if (after === 0) return known[0][1];
  const [[x0, y0], [x1, y1]] = [known[after - 1], known[after]];
  return y0 + ((y1 - y0) * (x - x0)) / (x1 - x0);
}

/** Says the values under the pointer. */
function point(place, readout, options, event) {
  const cross = place.querySelector(".cross");
  if (!cross || !options.read) return;
  const s = scales(place, 0, options);
  const x = event.clientX - place.getBoundingClientRect().left;
  const value = s.x0 + ((x - s.left) / (s.right - s.left)) * (s.x1 - s.x0);
  let best = null;
  for (const one of options.series[0].points) {
    if (one[1] !== null && (best === null || Math.abs(one[0] - value) < Math.abs(best[0] - value))) best = one;
  }
  if (!best) return;
  const at = s.toX(best[0]);
  cross.setAttribute("x1", at);
  cross.setAttribute("x2", at);
  cross.setAttribute("visibility", "visible");
  readout.textContent = options.read(best);
}

/** A curve in words: where it starts and ends, its least and most, and some points between. */
export function inWords(points, format) {
  const known = points.filter(([, value]) => value !== null);
  if (!known.length) return "no points yet";
  const step = Math.max(1, Math.ceil(known.length / 8));
  const some = known.filter((_, index) => index % step === 0 || index === known.length - 1);
  const values = known.map(([, value]) => value);
  const ends = `between ${format(Math.min(...values))} and ${format(Math.max(...values))}`;
  return `${ends}; ${some.map(([x, value]) => `${x}: ${format(value)}`).join(", ")}`;
}

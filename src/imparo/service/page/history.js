// How it learns: accuracy, time and memory against examples, and what it mistook for what.

import { call, learnerPath } from "./api.js";
import { chart, inWords } from "./charts.js";
import { $, bytes, el, percent, say, short, throttled } from "./dom.js";
import { toast } from "./notices.js";
import { keyOf, store, textOf } from "./store.js";

const MOST = 20; // classes in the table

const charts = {};
let seen = null; // which learner's history, and when

export function setUp() {
  for (const name of ["accuracy", "ms", "memory"]) charts[name] = chart($(`#chart-${name}`));
  const refresh = throttled(1000, load);
  const maybe = () => {
    const { state } = store;
    $("#learning").hidden = !state?.n_seen;
    const now = state && `${state.name} ${state.created} ${state.number}`;
    if (!state || now === seen || $("#view-teach").hidden || document.hidden) return;
    refresh();
  };
  store.on("choose", () => {
    clear();
    if (!$("#view-teach").hidden) load();
  });
  store.on("state view online", maybe);
  document.addEventListener("visibilitychange", maybe);
}

/** Nothing of one learner is shown as if it were of another. */
function clear() {
  seen = null;
  say($("#learning-hint"), "");
  for (const name of Object.keys(charts)) {
    say($(`#${name}-now`), "");
    charts[name]({ series: [], empty: "One moment …" });
  }
  $("#confusion").replaceChildren();
}

async function load() {
  const { state } = store;
  if (!state?.n_seen || !store.online) return;
  const now = (seen = `${state.name} ${state.created} ${state.number}`);
  try {
    const history = await call(learnerPath(state.name, "/history"));
    if (store.name === state.name) draw(history, store.state);
  } catch (failure) {
    if (seen === now) seen = null;
    if (!failure.away && !failure.busy && failure.status !== 404) toast(failure.message);
  }
}

const milliseconds = (value) => `${short(value)} ms`;
const X = { label: "examples seen", low: 0 };

function draw(history, state) {
  say($("#learning-hint"), `After ${state.n_seen} ${state.n_seen === 1 ? "example" : "examples"}.`);
  const classifies = state.kind === "classifier";
  accuracy(classifies ? history.accuracy ?? [] : history.error ?? [], classifies);
  const ms = history.milliseconds ?? [];
  const middle = medians(ms);
  const high = 2 * Math.max(...middle.map(([, value]) => value));
  const above = ms.map(([, value]) => value).filter((value) => value > high);
  figure("#ms-now", middle, milliseconds);
  charts.ms({
    series: [{ points: middle, kind: "blue area" }, { points: ms.filter(([, value]) => value <= high), kind: "blue dots" }],
    x: X,
    y: { low: 0, high: ms.length ? high : undefined, format: short },
    note: above.length ? `↑ ${above.length} above, up to ${milliseconds(Math.max(...above))}` : "",
    read: ([x, y]) => `${x} examples: ${milliseconds(y)}`,
    text: `Milliseconds for an update against examples seen, median of neighbours: ${inWords(middle, milliseconds)}.`,
  });
  const memory = history.memory ?? [];
  figure("#memory-now", memory, bytes);
  charts.memory({
    series: [{ points: memory, kind: "blue area" }],
    x: X,
    y: { low: 0, format: bytes, room: 58 },
    read: ([x, y]) => `${x} examples: ${bytes(y)}`,
    text: `Memory of the model against examples seen, ${inWords(memory, bytes)}.`,
  });
  $("#confusion-card").hidden = !classifies;
  if (classifies) confusion(history.confusion ?? { labels: [], counts: [] });
}

/** The median of the neighbours of each point: single updates wait for other work of the machine. */
function medians(points) {
  const reach = Math.min(12, Math.max(2, Math.floor(points.length / 20)));
  return points.map(([x], index) => {
    const near = points.slice(Math.max(0, index - reach), index + reach + 1).map(([, value]) => value);
    return [x, near.sort((one, other) => one - other)[Math.floor(near.length / 2)]];
  });
}

function accuracy(points, classifies) {
  const format = classifies ? percent : short;
  say($("#accuracy-title"), classifies ? "Right before being told" : "Error before being told");
  say($("#accuracy-hint"), classifies
    ? "Each example is first answered, then learned: the share answered rightly."
    : "Each example is first predicted, then learned: how far the prediction was off.");
  figure("#accuracy-now", points, format);
  charts.accuracy({
    series: [{ points, kind: "good area" }],
    x: X,
    y: classifies ? { low: 0, high: 1, ticks: [0, 0.25, 0.5, 0.75, 1], format: percent, room: 52 } : { low: 0, format: short },
    read: ([x, y]) => `up to ${x} examples: ${format(y)}`,
    text: `${classifies ? "Share answered rightly" : "Error"} before learning against examples seen, ${inWords(points, format)}.`,
    empty: "The first point comes after a few more examples.",
  });
}

function figure(selector, points, format) {
  const last = points[points.length - 1];
  say($(selector), last ? format(last[1]) : "");
}

function confusion({ labels, counts }) {
  const shown = counts.map((row) => row.reduce((sum, one) => sum + one, 0));
  let order = labels.map((_, index) => index);
  if (labels.length > MOST) order = order.sort((a, b) => shown[b] - shown[a]).slice(0, MOST).sort((a, b) => a - b);
  const left = labels.length - order.length;
  say($("#confusion-hint"), `One row for what was shown, one column for what it answered, before it was told.${left ? ` The ${MOST} shown most; ${left} more are not in the table.` : ""}`);
  // As the cards have it: true comes as 1 here.
  const own = new Map((store.state?.classes ?? []).map(({ label }) => [keyOf(label), label]));
  const keys = labels.map(keyOf);
  const texts = labels.map((label, index) => textOf(own.has(keys[index]) ? own.get(keys[index]) : label));
  const heading = (scope, text) => el("th", { scope, title: text }, el("span", { text }));
  const head = el("tr", {}, el("td", { class: "corner", text: "shown ↓  answered →" }), ...order.map((j) => heading("col", texts[j])));
  const body = order.map((i) => el("tr", {}, heading("row", texts[i]), ...order.map((j) => cell(counts[i][j], shown[i], keys[i] === keys[j]))));
  const total = order.reduce((sum, i) => sum + shown[i], 0);
  const right = order.reduce((sum, i) => sum + order.reduce((part, j) => part + (keys[i] === keys[j] ? counts[i][j] : 0), 0), 0);
  const caption = el("caption", { text: total ? `${right} of ${total} answered rightly before being told.` : "It has not answered anything before being told yet." });
  $("#confusion").replaceChildren(caption, el("thead", {}, head), el("tbody", {}, ...body));
}

function cell(count, shown, right) {
  const node = el("td", { class: right ? "right" : "wrong", text: count || "·" });
  if (!count) node.setAttribute("aria-label", "0");
  const share = shown ? count / shown : 0;
  if (count) node.style.setProperty("--share", `${Math.round(8 + 37 * share)}%`);
  return node;
}

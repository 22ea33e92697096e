// Help for rare classes: the slider for α, seen at once in the answer and in a small chart.

import { previewAlpha } from "./answer.js";
import { call, learnerPath } from "./api.js";
import { chart, interpolate } from "./charts.js";
import { $, el, percent, say, throttled } from "./dom.js";
import { toast } from "./notices.js";
import { keyOf, store, textOf } from "./store.js";

let draw = null;
let curves = null; // the last answer of GET recoding
let of = null;
let moving = false; // the slider is in use
let wish = null; // what is to be set next; the last wish counts
let setting = false; // one is on its way
const slider = $("#alpha");
const auto = $("#alpha-auto");

export function setUp() {
  draw = chart($("#chart-recoding"), 140);
  const preview = throttled(80, () => touched() && previewAlpha(slider.value));
  slider.addEventListener("input", () => {
    moving = true;
    auto.checked = false;
    value();
    preview();
  });
  slider.addEventListener("change", () => set(Number(slider.value)));
  // Dragged away and back to where it was, it tells of no change.
  for (const name of ["pointerup", "pointercancel", "blur"]) slider.addEventListener(name, () => setTimeout(rest));
  auto.addEventListener("change", () => set(auto.checked ? "auto" : Number(slider.value)));
  const refresh = throttled(1500, load);
  const maybe = () => {
    const { state } = store;
    $("#rare").hidden = !several(state);
    if (!several(state)) return;
    follow(state.recoding);
    if (of !== stamp(state) && !$("#view-teach").hidden && !document.hidden) refresh();
  };
  store.on("choose", () => {
    [of, curves, moving, wish] = [null, null, false, null];
    value();
    if (!$("#view-teach").hidden) load();
  });
  store.on("state view online", maybe);
  document.addEventListener("visibilitychange", maybe);
}

const several = (state) => state?.kind === "classifier" && state.classes.length > 1;
const stamp = (state) => `${state.name} ${state.created} ${state.number}`;

/** Whether it is in use, or what was wished is not yet set: what the server says of it waits. */
const touched = () => moving || setting;

function follow(recoding) {
  if (!recoding || touched()) return;
  auto.checked = recoding.setting === "auto";
  slider.value = recoding.in_use ?? 0;
  value();
}

function rest() {
  if (!moving) return;
  moving = false;
  if (setting) return;
  previewAlpha(null);
  follow(store.state?.recoding);
}

/** One after the other: of two on their way at once, the first might come last. */
async function set(recoding) {
  moving = false;
  wish = { name: store.name, recoding };
  if (setting) return;
  setting = true;
  try {
    while (wish) {
      const { name, recoding } = wish;
      wish = null;
      const state = await call(learnerPath(name), { method: "PATCH", json: { recoding } });
      if (store.learners.some((learner) => learner.name === name)) store.put(state);
    }
  } catch (failure) {
    wish = null;
    toast(failure.message);
  } finally {
    setting = false;
    if (!moving) previewAlpha(null);
    follow(store.state?.recoding);
  }
}

async function load() {
  const { state } = store;
  if (!several(state) || !store.online) return;
  const now = (of = stamp(state));
  try {
    const answer = await call(learnerPath(state.name, "/recoding"));
    if (store.name !== state.name) return;
    curves = answer;
    value();
  } catch (failure) {
    if (of === now) of = null;
    if (!failure.away && !failure.busy && ![404, 409].includes(failure.status)) toast(failure.message);
  }
}

/** Shows the slider's α, in words and in the chart. */
function value() {
  const alpha = Number(slider.value);
  say($("#alpha-value"), alpha.toFixed(2));
  slider.setAttribute("aria-valuetext", `${alpha.toFixed(2)}${auto.checked ? ", chosen by itself" : ""}`);
  if (!curves) {
    $("#rare-now").replaceChildren();
    return draw({ series: [], empty: "One moment …" });
  }
  const pairs = (list) => curves.alphas.map((at, index) => [at, list?.[index] ?? null]);
  const judged = curves.classes.filter(({ found }) => found?.some((share) => share !== null));
  const rarest = (classes) => classes.reduce((least, one) => (least === null || one.shown < least.shown ? one : least), null);
  const [rare, seldom] = [rarest(judged), rarest(curves.classes)];
  // The curve lags behind lessons: what was shown again meanwhile is not called seldom.
  const now = (one) => store.state?.classes.find(({ label }) => keyOf(label) === keyOf(one.label))?.shown;
  const alone = rare && seldom.shown < rare.shown && seldom.shown === now(seldom) ? seldom : null;
  const series = rare ? [{ points: pairs(rare.found), kind: "accent" }, { points: pairs(curves.accuracy), kind: "blue dashed" }] : [];
  const [ofRare, ofAll] = series.map(({ points }) => interpolate(points, alpha));
  const told = rare ? `At α = ${alpha.toFixed(2)}, of examples that it has not learned, or answers as if it had not, it finds ${percent(ofRare)} of the rarest, “${textOf(rare.label)}”, and ${percent(ofAll)} of all classes on average.` : "";
  draw({
    series,
    x: { label: "", low: 0, high: 1, ticks: [0, 0.5, 1], format: (at) => ({ 0: "as shown", 1: "all alike" })[at] ?? `α ${at}` },
    y: { low: 0, high: 1, ticks: [0, 0.5, 1], format: percent, room: 52 },
    mark: alpha,
    text: told,
    empty: "Show each thing twice or more, and this shows what α does.",
  });
  const swatch = (kind) => el("span", { class: `swatch ${kind}`, "aria-hidden": "true" });
  $("#rare-now").replaceChildren(...(rare ? [
    el("span", {}, swatch("accent"), `found of “${textOf(rare.label)}”, the rarest: `, el("b", { text: percent(ofRare) })),
    el("span", {}, swatch("blue dashed"), "found of all classes: ", el("b", { text: percent(ofAll) })),
    ...(alone ? [el("span", { text: `“${textOf(alone.label)}” was shown ${alone.shown === 1 ? "once" : `${alone.shown} times`}: show it again, and it counts here.` })] : []),
  ] : []));
}

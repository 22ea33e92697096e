// Recognising: asks what the picture is, one request at a time, and shows the answer.

import { call, learnerPath } from "./api.js";
import { $, el, percent, say } from "./dom.js";
import { current } from "./inputs.js";
import { toast } from "./notices.js";
import { keyOf, store, textOf } from "./store.js";
import { heldLabel, teaching, waiting } from "./teach.js";

const EVERY = 165; // milliseconds between two questions at least
// Of two names the likelier always has a half; below this, answers are right about every second time.
const SURE = 0.7;
const BARS = 6;

let busy = false;
let wanted = false;
let timer = null;
let notBefore = 0;
let preview = null; // α while its slider is dragged
const rows = new Map(); // label's key -> its bar
let spoken = "";
let lastSpoken = 0;
let speaker = null;

export function setUp() {
  store.on("choose state online hold taught progress", again);
  document.addEventListener("visibilitychange", again);
  again();
}

/** Asks as soon as may be. */
export function again() {
  wanted = true;
  pump();
}

export function previewAlpha(alpha) {
  preview = alpha;
  again();
}

function due() {
  if (document.hidden || $("#view-teach").hidden) return false;
  const held = heldLabel();
  const stuck = waiting();
  if (stuck) return idle("Waiting", stuck);
  if (held) return learning(held);
  if (!store.takesImages) return idle("No pictures", "This learner is taught by programs. Its curves are below.");
  if (!store.state?.classes.length) {
    return idle("Nothing yet", "Show it a thing, give the name and teach it. Then it looks for that thing here.");
  }
  if (!current().ready()) return idle("Nothing to see", WAITING[current().name]);
  if (!store.online) return idle("Waiting", "The server does not answer. It goes on by itself when the server is back.");
  if (teaching()) return false;
  return current().live || wanted;
}

const WAITING = {
  camera: "Start the camera, and it tells you what it sees.",
  image: "Drop a picture, and it tells you what it sees.",
  draw: "Draw something, and it tells you what it sees.",
};

async function pump() {
  clearTimeout(timer);
  if (busy || !due()) return;
  const delay = notBefore - performance.now();
  if (delay > 0) {
    timer = setTimeout(pump, delay);
    return;
  }
  busy = true;
  wanted = false;
  notBefore = performance.now() + EVERY;
  const source = current();
  const learner = store.name;
  try {
    const blob = await source.grab();
    if (blob) {
      const query = preview === null ? "" : `?recoding=${preview}`;
      const path = learnerPath(learner, `/ask/image${query}`);
      const result = await call(path, { method: "POST", body: blob, type: blob.type, patience: 0 });
      if (source === current() && learner === store.name && !heldLabel()) show(result);
    }
  } catch (failure) {
    if (failure.away || failure.busy) wanted = true;
    else if (failure.status === 404) store.load().catch(() => {});
    else if (failure.status !== 409) toast(failure.message);
    notBefore = performance.now() + 1000 * (failure.retryAfter || 2);
  } finally {
    busy = false;
    pump();
  }
}

function idle(text, hint) {
  shape(text, "idle", hint);
  $("#confidence-row").hidden = true;
  $("#bars").hidden = true;
  delete $("#answer").dataset.label;
  return false;
}

function learning({ label, count }) {
  const so = count === 0 ? "" : count === 1 ? "One example. " : `${count} examples. `;
  shape(textOf(label), "learning", `${so}${current().live ? "Show it from every side. Let go, and it looks again." : ""}`);
  $("#confidence-row").hidden = true;
  return false;
}

function shape(text, kind, hint) {
  const node = $("#answer");
  say(node, text);
  node.dataset.kind = kind;
  node.classList.toggle("long", text.length > 14);
  say($("#answer-title"), kind === "learning" ? "It learns" : "It sees");
  say($("#answer-hint"), hint);
}

function show({ answer, confidence, classes, probabilities: given }) {
  const probabilities = Array.isArray(given[0]) ? given[0] : given; // of one picture, with or without its row
  const sure = confidence >= SURE;
  const text = textOf(answer);
  const only = classes.length === 1;
  const hint = only
    ? "It knows this one name only. Teach it a second thing, and it can tell them apart."
    : sure ? "" : `Perhaps “${text}”, or something new. If it is wrong, give the name and teach it.`;
  shape(sure ? text : "Not sure", sure ? "sure" : "unsure", hint);
  $("#answer").dataset.label = text;
  $("#confidence-row").hidden = false;
  say($("#confidence"), percent(confidence));
  $("#confidence-fill").style.width = percent(confidence).replace(" ", "");
  bars(classes, probabilities, answer);
  speak(sure ? text : `Not sure, perhaps ${text}`);
}

/** The likeliest names. Rows stay where they are found, so that their bars can move. */
function bars(classes, probabilities, answer) {
  const list = $("#bars");
  list.hidden = classes.length < 2;
  const order = classes
    .map((label, index) => ({ label, key: keyOf(label), share: probabilities[index] }))
    .sort((one, other) => other.share - one.share)
    .slice(0, BARS);
  const keys = new Set(order.map(({ key }) => key));
  for (const [key, row] of rows) {
    if (keys.has(key)) continue;
    row.item.remove();
    rows.delete(key);
  }
  order.forEach(({ label, key, share }, place) => {
    let row = rows.get(key);
    if (!row) {
      const name = el("span", { class: "name" });
      const fill = el("div", { class: "fill" });
      const value = el("span", { class: "share" });
      const item = el("li", {}, name, el("div", { class: "track", "aria-hidden": "true" }, fill), value);
      row = { item, name, fill, value };
      rows.set(key, row);
    }
    say(row.name, textOf(label));
    if (list.children[place] !== row.item) list.insertBefore(row.item, list.children[place] ?? null);
    row.fill.style.width = `${(100 * share).toFixed(1)}%`;
    say(row.value, percent(share));
    row.item.classList.toggle("first", key === keyOf(answer));
  });
}

/** Tells screen readers, when the answer has changed and stayed for a moment. */
function speak(text) {
  if (text === spoken) {
    clearTimeout(speaker);
    speaker = null;
    return;
  }
  if (speaker !== null) return;
  const ms = Math.max(600, lastSpoken + 2500 - performance.now());
  speaker = setTimeout(() => {
    speaker = null;
    const node = $("#answer");
    const now = node.dataset.kind === "sure" ? node.dataset.label : node.dataset.kind === "unsure" ? `Not sure, perhaps ${node.dataset.label}` : null;
    if (now === null || now === spoken) return;
    spoken = now;
    lastSpoken = performance.now();
    $("#answer-live").textContent = now;
  }, ms);
}

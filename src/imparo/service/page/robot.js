// The robot arm's inverse dynamics, learned live: physics (P), data (NP) and both (SP).

import { at, health, ENDED } from "./api.js";
import { armView } from "./arm.js";
import { chart } from "./charts.js";
import { $, el, say, short } from "./dom.js";
import { hangUp } from "./link.js";

const WINDOW = 90; // seconds of the curves
const KINDS = { P: "p dotted", NP: "np dashed", SP: "sp" };
const MEANS = { P: "physics", NP: "data alone", SP: "physics and data" };
const names = Object.keys(KINDS);

let socket = null;
let open = false;
let tries = 0;
let timer = null;
let drawn = 0;
let frame = null;
let samples = [];
let arm = null;
let paused = false;
const charts = {};
const values = {};

export function setUp() {
  arm = armView($("#arm"));
  charts.force = chart($("#chart-force"), 230);
  charts.torque = chart($("#chart-torque"), 230);
  for (const name of names) values[name] = { error: el("b"), ms: el("span", { class: "hint" }) };
  $("#robot-legend").append(...names.map((name) => el("li", { class: KINDS[name] },
    el("span", { class: `swatch ${KINDS[name]}`, "aria-hidden": "true" }),
    el("span", { class: "legend-name" }, el("b", { text: name }), ` ${MEANS[name]}`), values[name].error, values[name].ms)));
  const payload = $("#payload-button");
  payload.addEventListener("click", () => {
    payload.setAttribute("aria-pressed", String(!pressed(payload)));
    send("payload");
  });
  $("#robot-pause").addEventListener("click", () => pause(!paused));
  $("#robot-restart").addEventListener("click", () => {
    if (paused) pause(false);
    forget();
    sendNow({ do: "restart" });
  });
  for (const radio of document.querySelectorAll("[name=path]")) radio.addEventListener("change", () => send("path"));
  $("#robot-speed").addEventListener("input", () => say($("#speed-value"), `${$("#robot-speed").value}×`));
  $("#robot-speed").addEventListener("change", () => send("speed"));
  health.addEventListener("ended", () => {
    leave();
    notice(ENDED);
  });
}

const pressed = (button) => button.getAttribute("aria-pressed") === "true";

/** The button says what pressing it does next; with a name that changes, it is no toggle. */
function pause(on) {
  paused = on;
  const button = $("#robot-pause");
  say(button, on ? "Go on" : "Pause");
  button.classList.toggle("strong", on);
  send("pause");
}

const COMMANDS = {
  payload: () => ({ on: pressed($("#payload-button")) }),
  path: () => ({ path: $("[name=path]:checked").value }),
  speed: () => ({ factor: Number($("#robot-speed").value) }),
  pause: () => ({ on: paused }),
};
const wishes = new Set(); // what the person has set; a new session is set alike

function send(what) {
  wishes.add(what);
  sendNow({ do: what, ...COMMANDS[what]() });
}

function sendNow(command) {
  if (socket?.readyState === WebSocket.OPEN) socket.send(JSON.stringify(command));
}

export function enter() {
  if (open) return;
  open = true;
  connect();
}

export function leave() {
  open = false;
  clearTimeout(timer);
  const old = socket;
  socket = null;
  hangUp(old);
}

function connect() {
  const mine = (socket = new WebSocket(at("api/robot").replace(/^http/, "ws")));
  let failure = null;
  forget();
  // The server lets the three learn a first circle before the first sample comes.
  say($("#robot-clock"), "getting ready …");
  for (const draw of Object.values(charts)) draw({ series: [], empty: "Getting ready: all three learn a first circle …" });
  mine.onopen = () => {
    for (const what of wishes) send(what);
  };
  mine.onmessage = ({ data }) => {
    if (mine !== socket) return;
    const message = JSON.parse(data);
    if (message.error) notice((failure = message.error));
    else if (message.about) about(message.about);
    else take(message);
  };
  mine.onclose = () => {
    if (mine !== socket || !open) return;
    if (!failure) notice("Connection lost, trying again. The arm starts anew when the server is back.");
    timer = setTimeout(connect, Math.min(8000, 700 * 1.7 ** tries++));
  };
}

function about(facts) {
  say($("#robot-about"), `${facts.joints} joints, simulated by the server, ${facts.rate} samples a second. Errors are of the last ${facts.window} samples.`);
  say($("#robot-trained"), facts.trained ?? "");
  $("#robot-more").hidden = !facts.trained;
}

function notice(text) {
  $("#robot-notice").hidden = !text;
  say($("#robot-notice"), text ?? "");
}

function forget() {
  samples = [];
  arm.clear();
}

function take(sample) {
  tries = 0;
  notice(null);
  if (samples.length && sample.t <= samples[samples.length - 1].t) forget(); // it was restarted
  samples.push(sample);
  while (samples[0].t < sample.t - WINDOW) samples.shift();
  if (!wishes.has("payload")) $("#payload-button").setAttribute("aria-pressed", String(sample.payload));
  if (!wishes.has("path")) $(`[name=path][value="${sample.path === "xz" ? "xz" : "xy"}"]`).checked = true;
  arm.add(sample);
  frame ??= requestAnimationFrame(draw);
}

function draw() {
  frame = null;
  const last = samples[samples.length - 1];
  if (!last || $("#view-robot").hidden) return;
  const now = performance.now();
  if (now - drawn < 100) return; // ten curves a second are enough for the eye
  drawn = now;
  say($("#robot-clock"), `${Math.floor(last.t / 60)}:${String(Math.floor(last.t % 60)).padStart(2, "0")} · ${last.n} ${last.n === 1 ? "sample" : "samples"} learned`);
  for (const name of names) {
    say(values[name].error, `${short(last.force[name])} N`);
    say(values[name].ms, `${last.milliseconds[name].toFixed(2)} ms per update`);
  }
  const bands = carried();
  curves("force", "N", bands);
  curves("torque", "Nm", bands);
  $("#arm").setAttribute("aria-label", `The arm moves its hand along ${last.path === "xy" ? "a flat" : "an upright"} circle, ${last.payload ? "with" : "without"} the payload.`);
}

/** When the payload was in the hand: spans of time, for the shade behind the curves. */
function carried() {
  const spans = [];
  let from = null;
  for (const { t, payload } of samples) {
    if (payload && from === null) from = t;
    if (!payload && from !== null) {
      spans.push([from, t]);
      from = null;
    }
  }
  if (from !== null) spans.push([from, samples[samples.length - 1].t]);
  return spans;
}

function curves(what, unit, bands) {
  const last = samples[samples.length - 1];
  const series = ["SP", "NP", "P"].map((name) => ({ points: samples.map((one) => [one.t, one[what][name]]).filter(([, value]) => value > 0), kind: KINDS[name] }));
  const now = names.map((name) => `${name} ${short(last[what][name])} ${unit}`).join(", ");
  charts[what]({
    series,
    bands,
    x: { label: "seconds", low: Math.max(0, last.t - WINDOW), high: Math.max(last.t, 15) },
    y: { log: true, format: short, room: 46 },
    text: `Error of the ${what} over the last ${Math.round(last.t - samples[0].t)} seconds, on a logarithmic axis. Now: ${now}. ${last.payload ? "The payload is in the hand." : "Without payload."}`,
  });
}

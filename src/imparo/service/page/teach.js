// Naming and teaching: hold the button, and pictures are taught under the name.

import { call, learnerPath } from "./api.js";
import { $, el, say, wait } from "./dom.js";
import { current } from "./inputs.js";
import { changed, teachBySocket } from "./link.js";
import { toast } from "./notices.js";
import { labelOf, store, textOf } from "./store.js";

const EVERY = 220; // milliseconds between two pictures of a camera
const PATIENCE = 5; // seconds at most, until what was not taken is sent again
const WAITING = 4; // pictures that wait for the server before no more are taken

const queue = []; // {label, learner (its name), blob, key, session, taught(whether it was)}
let working = false;
let held = null; // {label, count} while a button is held
let last = null; // the same, of the last time
let warning = "";
let trouble = ""; // why the server does not take what waits
let focusAfter = null;

export const teaching = () => held !== null || queue.length > 0 || working;
export const heldLabel = () => held;
/** What is said while pictures wait for the server, "" while none does. */
export const waiting = () => (queue.length && (trouble || !store.online) ? status() : "");

const field = $("#name-field");
const name = () => field.value.trim();

export function setUp() {
  holdable($("#teach-button"), () => begin(), end);
  // Enter in the field does what the button does: name, Enter, next.
  holdable(field, () => begin(), end, ["Enter"]);
  field.addEventListener("input", () => {
    warning = "";
    show();
  });
  store.on("about", () => {
    field.maxLength = store.about?.limits?.label_length ?? 64;
  });
  store.on("choose state online", show);
  document.addEventListener("visibilitychange", () => document.hidden && end());
  addEventListener("blur", end);
  addEventListener("beforeunload", (event) => queue.length && event.preventDefault());
  show();
}

/** Makes a button that acts while it is held: by pointer, by key, or by a helper's click. */
export function holdable(node, down, up, keys = [" ", "Enter"]) {
  let by = null;
  const press = (how) => {
    if (by !== null || node.disabled) return;
    by = how;
    down();
  };
  const release = (how) => {
    if (by !== how) return;
    by = null;
    up();
  };
  if (node instanceof HTMLButtonElement) {
    node.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      node.setPointerCapture(event.pointerId);
      press("pointer");
    });
    for (const what of ["pointerup", "pointercancel", "lostpointercapture"]) node.addEventListener(what, () => release("pointer"));
    node.addEventListener("contextmenu", (event) => event.preventDefault());
    // Screen readers and voice control click without pressing: as if held for a second.
    node.addEventListener("click", (event) => {
      if (event.detail !== 0 || by !== null) return;
      press("click");
      setTimeout(() => release("click"), 1000);
    });
  }
  node.addEventListener("keydown", (event) => {
    if (!keys.includes(event.key) || event.isComposing) return;
    event.preventDefault();
    if (!event.repeat) press("key");
  });
  node.addEventListener("keyup", (event) => keys.includes(event.key) && release("key"));
  node.addEventListener("blur", () => release("key"));
}

/** Starts teaching under a label, the one in the field unless another is given. */
export async function begin(label = labelOf(name())) {
  const source = current();
  if (!store.takesImages) return complain("This learner takes no pictures; choose or create another.", $("#learner-select"));
  if (label === "") return complain("First write what it is.", field);
  if (!source.ready()) return complain(...MISSING[source.name]());
  warning = "";
  last = held = { label, count: 0 };
  const mine = held;
  store.tell("hold");
  show();
  let learner;
  try {
    learner = await store.ensure();
  } catch (failure) {
    toast(failure.message);
    if (held === mine) end();
    return;
  }
  if (!source.live) return put(source, mine, learner);
  do {
    if (queue.length < WAITING) await put(source, mine, learner);
    await wait(EVERY);
  } while (held === mine);
}

const MISSING = {
  camera: () => ["First start the camera.", $("#camera-start")],
  image: () => ["First choose a picture.", $("#file-input")],
  draw: () => ["First draw something on the pad.", null],
};

function complain(text, focus) {
  warning = text;
  show();
  // After the press: the browser puts the focus on the button itself first.
  focusAfter = focus;
}

export function end() {
  focusAfter?.focus();
  focusAfter = null;
  if (!held) return;
  held = null;
  show();
  store.tell("hold");
}

async function put(source, session, learner) {
  const blob = await source.grab();
  if (blob) add(blob, session.label, learner, session, source.taken());
}

function add(blob, label, learner, session, taught) {
  queue.push({ blob, label, learner, session, taught, key: newKey() });
  work();
}

/** Under its key a picture is learned once, also if it is sent again because no answer came. */
const newKey = () => [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");

/** Teaches several pictures under the name in the field. */
export async function teachAll(list) {
  const label = labelOf(name());
  if (label === "") {
    complain("First write what it is.", field);
    return end();
  }
  const session = { label, count: 0 };
  warning = "";
  last = session;
  try {
    const learner = await store.ensure();
    const source = current();
    for (const one of list) {
      const blob = await source.grab(one);
      while (queue.length >= WAITING) await wait(50);
      if (session.failed) return;
      add(blob, label, learner, session, source.taken(one));
    }
  } catch (failure) {
    toast(failure.message);
  }
}

/** Sends what waits, one at a time and in order. Nothing is dropped while the server is away. */
async function work() {
  if (working) return;
  working = true;
  while (queue.length) {
    const job = queue[0];
    try {
      if (typeof job.label === "string") {
        const path = learnerPath(job.learner, `/teach/image?label=${encodeURIComponent(job.label)}&key=${job.key}`);
        await call(path, { method: "POST", body: job.blob, type: job.blob.type, patience: 0 });
      } else await teachBySocket(job);
      queue.shift();
      trouble = "";
      job.session.count++;
      job.taught(true);
      show();
      store.tell("progress");
      changed();
    } catch (failure) {
      if (failure.away || failure.busy || failure.ended) {
        trouble = failure.busy ? failure.message : "";
        show();
        store.tell("progress");
        // A full disk may be long in being emptied, but not a person in coming back to look.
        await wait(1000 * Math.min(failure.retryAfter, PATIENCE));
        continue;
      }
      toast(failure.message);
      trouble = "";
      for (const one of queue.splice(0)) {
        one.session.failed = true;
        one.taught(false);
      }
      end();
      if (failure.status === 404) store.load().catch(() => {});
    }
  }
  working = false;
  show();
  store.tell("taught");
}

const STEPS = { camera: "Hold, and turn it around", image: "Press for each picture", draw: "Press for each drawing" };

export function show() {
  const button = $("#teach-button");
  const { live } = current();
  const shown = held ? textOf(held.label) : name();
  document.body.dataset.mode = held ? "teaching" : "recognising";
  button.disabled = !store.takesImages;
  button.classList.toggle("held", held !== null);
  const text = held ? "Teaching" : live ? "Hold to teach" : "Teach";
  const quoted = shown ? [" ", el("span", { class: "quoted", text: `“${shown}”` })] : [];
  if (button.dataset.shown !== text + shown) $("#teach-text").replaceChildren(text, ...quoted);
  button.dataset.shown = text + shown;
  say($("#teach-count"), held?.count ? String(held.count) : "");
  say($("#teach-step-text"), STEPS[current().name]);
  say($("#teach-status"), warning || status());
  $("#teach-status").classList.toggle("warn", warning !== "");
}

function status() {
  const { length } = queue;
  const kept = `${length} not yet taught ${length === 1 ? "is" : "are"} kept while this page is open.`;
  if (!store.online && length) return `Waiting for the server. ${kept}`;
  if (trouble && length) return `The server does not take it now: ${trouble.replace(/; nothing was done.*$/, "")}. ${kept}`;
  if (held || length || !last?.count) return "";
  return `${last.count === 1 ? "One example" : `${last.count} examples`} of “${textOf(last.label)}” taught.`;
}

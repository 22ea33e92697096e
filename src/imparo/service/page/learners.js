// Which learner: the chooser above, and the dialog to create, bring, join and delete them.

import { at, call, learnerPath } from "./api.js";
import { $, bytes, el, say } from "./dom.js";
import { settle, toast } from "./notices.js";
import { FIRST, store } from "./store.js";

const select = $("#learner-select");
const dialog = $("#learners");
const fields = ["#create-name", "#import-file", "#import-name"].map((one) => $(one));
const LOOKS = { network: "photographs", pixels: "drawings", vectors: "vectors" };
const NAMES = "A name has letters from a to z, digits, - and _ only: no spaces, no accents.";
let asking = null; // the learner whose deletion waits for a yes
let working = false; // the server does what was asked for last

export function setUp() {
  select.addEventListener("change", () => select.value && store.choose(select.value));
  $("#learners-button").addEventListener("click", () => {
    asking = null;
    if (!working) silence();
    draw();
    dialog.showModal();
    settle();
    store.load().catch(() => {}); // others may have made or deleted some
  });
  dialog.addEventListener("close", settle);
  $("#learners-close").addEventListener("click", () => dialog.close());
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
  $("#create-form").addEventListener("submit", create);
  $("#import-form").addEventListener("submit", bring);
  $("#import-file").addEventListener("change", propose);
  $("#merge-form").addEventListener("submit", merge);
  for (const field of fields) field.addEventListener("input", () => blame(field, ""));
  store.on("learners about choose", draw);
  store.on("state", () => dialog.open && draw());
  store.on("state choose about", note);
  draw();
}

const looks = ({ kind, features }) => (kind === "classifier" ? LOOKS[features] ?? features : kind);
const open = (state) => state?.status === "open";

function draw() {
  const { learners, name } = store;
  const wanted = learners.length ? learners.map((one) => one.name) : [""];
  if (!select.options.length || [...select.options].map((one) => one.value).join() !== wanted.join()) {
    select.replaceChildren(...wanted.map((one) => el("option", { value: one, text: one || `${FIRST} (new)` })));
  }
  select.value = name ?? "";
  list();
  features();
  const { state } = store;
  const others = open(state) ? learners.filter((one) => one.name !== name && open(one) && one.kind === state.kind && one.features === state.features) : [];
  $("#merge-form").hidden = others.length === 0;
  say($("#merge-into"), name ?? "");
  const other = $("#merge-other");
  const before = other.value;
  other.replaceChildren(...others.map((one) => el("option", { value: one.name, text: one.name })));
  if (others.some((one) => one.name === before)) other.value = before;
}

function list() {
  const node = $("#learner-list");
  const focused = node.contains(document.activeElement) ? document.activeElement.dataset.does : null;
  node.replaceChildren(...store.learners.map(row));
  if (!store.learners.length) node.append(el("li", { class: "hint", text: `None yet: the first thing you teach makes one, named “${FIRST}”.` }));
  enable();
  if (focused) [...node.querySelectorAll("[data-does]")].find((one) => one.dataset.does === focused)?.focus();
}

function row(state) {
  const { name, n_seen: seen } = state;
  const chosen = name === store.name;
  const damaged = state.status === "damaged";
  const count = state.classes.length;
  const facts = [looks(state), ...(count ? [`${count} ${count === 1 ? "name" : "names"}`] : []), `${seen} ${seen === 1 ? "example" : "examples"}`, `${bytes(state.disk ?? 0)} on disk`];
  const words = el("div", { class: "learner-words" }, el("b", { text: name }),
    damaged ? el("span", { class: "bad-text", text: state.reason ?? "It is damaged." }) : el("span", { class: "hint", text: facts.join(" · ") }));
  const does = (what) => ({ "data-does": `${what} ${name}` });
  if (asking === name) {
    return el("li", {}, words, el("p", { class: "ask", text: `Delete “${name}” and all it has learned? There is no way back; Export keeps a copy.` }),
      el("div", { class: "pair" },
        el("button", { type: "button", class: "danger", ...does("yes"), text: "Delete for good", onclick: () => remove(name) }),
        el("button", { type: "button", class: "quiet", ...does("keep"), text: "Keep", onclick: () => ask(null, `delete ${name}`) })));
  }
  return el("li", { class: chosen ? "chosen" : null }, words, el("div", { class: "pair" },
    chosen ? el("span", { class: "mark", text: "in use" }) : el("button", { type: "button", class: "quiet", ...does("use"), "aria-label": `Use ${name}`, text: "Use", onclick: () => store.choose(name) }),
    damaged ? null : el("a", { class: "button quiet", ...does("export"), href: at(learnerPath(name, "/export")), download: `${name}.imparo.zip`, "aria-label": `Export ${name}`, text: "Export" }),
    el("button", { type: "button", class: "quiet", ...does("delete"), "aria-label": `Delete ${name}`, text: "Delete", onclick: () => ask(name, `keep ${name}`) })));
}

function ask(name, focus) {
  asking = name;
  list();
  [...dialog.querySelectorAll("[data-does]")].find((one) => one.dataset.does === focus)?.focus();
}

function features() {
  const network = store.feature("network");
  const [first, second] = document.querySelectorAll("#create-form [name=features]");
  first.disabled = !network.available;
  if (!first.checked && !second.checked && store.features.length) (network.available ? first : second).checked = true;
  const reason = store.features.length && !network.available ? `Photographs cannot be used here: ${network.reason ?? "the network is not installed."}` : "";
  $("#create-note").hidden = !reason;
  say($("#create-note"), reason);
}

/** Says something under what it is about. */
function tell(where, text) {
  const node = $(`#${where}-told`);
  say(node, text);
  if (text) node.scrollIntoView({ block: "nearest" });
}

function silence() {
  for (const node of dialog.querySelectorAll(".told")) say(node, "");
  for (const field of fields) blame(field, "");
}

/** Says what is wrong with what is in a field, and goes there. */
function blame(field, text) {
  const node = $(`#${field.id}-error`);
  say(node, text);
  node.hidden = !text;
  if (!text) return field.removeAttribute("aria-invalid");
  field.setAttribute("aria-invalid", "true");
  field.focus();
}

/** The name in a field; null where it cannot be one, which is said. */
function named(field) {
  const name = field.value.trim();
  const wrong = name === "" ? "Give it a name." : /^[\w-]{1,64}$/.test(name) ? "" : NAMES;
  blame(field, wrong);
  return wrong ? null : name;
}

function enable() {
  for (const button of dialog.querySelectorAll("form button, .learner-list button")) button.disabled = working;
}

/** Runs what was asked for, one thing at a time; the server's sentence is shown where the person is. */
async function attempt(where, doing, run, field) {
  if (working) return;
  const from = document.activeElement;
  working = true;
  enable();
  silence();
  tell(where, doing);
  try {
    tell(where, (await run()) ?? "");
  } catch (failure) {
    const taken = field && failure.status === 409;
    tell(where, taken ? "" : failure.message);
    if (taken) blame(field, failure.message);
    if (!dialog.open) toast(failure.message);
  } finally {
    working = false;
    enable();
    // A button that cannot be pressed for a while loses the focus.
    if (dialog.open && [document.body, from].includes(document.activeElement)) (from.isConnected ? from : $("#learners-close")).focus();
  }
}

function arrived(state, told) {
  store.put(state);
  store.choose(state.name);
  dialog.close();
  toast(told, "good");
}

function create(event) {
  event.preventDefault();
  const form = event.target;
  const field = $("#create-name");
  const name = named(field);
  const features = form.elements.features.value || "pixels";
  if (name === null) return;
  attempt("create", `Making “${name}” …`, async () => {
    arrived(await call("api/learners", { method: "POST", json: { name, kind: "classifier", features } }), `“${name}” is ready. Show it something.`);
    field.value = "";
  }, field);
}

function propose() {
  const field = $("#import-name");
  const file = $("#import-file").files[0];
  if (!file || field.value) return;
  const name = file.name.replace(/\.(imparo|zip|imparo\.zip)$/i, "").replace(/[^\w-]+/g, "-").slice(0, 60);
  const taken = (one) => store.learners.some((learner) => learner.name === one);
  let number = 2;
  while (taken(`${name}-${number}`)) number++;
  field.value = taken(name) ? `${name}-${number}` : name;
  blame(field, "");
}

function bring(event) {
  event.preventDefault();
  const field = $("#import-name");
  const name = named(field);
  const [file] = $("#import-file").files;
  if (!file) blame($("#import-file"), "Choose a file first.");
  if (name === null || !file) return;
  attempt("import", `Bringing “${name}” in. A large file takes a while …`, async () => {
    const options = { method: "POST", body: file, type: "application/octet-stream", timeout: 300000 };
    arrived(await call(`api/import?name=${encodeURIComponent(name)}`, options), `“${name}” has been brought in.`);
    event.target.reset();
  }, field);
}

function merge(event) {
  event.preventDefault();
  const other = $("#merge-other").value;
  const { name } = store;
  attempt("merge", `“${name}” learns what was shown to “${other}”. This can take some seconds …`, async () => {
    const state = await call(learnerPath(name, "/merge"), { method: "POST", json: { other }, timeout: 600000 });
    arrived(state, `“${state.name}” knows what “${other}” knows, too.`);
  });
}

function remove(name) {
  return attempt("list", `Deleting “${name}” …`, async () => {
    await call(learnerPath(name), { method: "DELETE" });
    asking = null;
    await store.load();
    $("#learners-close").focus();
    return `“${name}” is deleted.`;
  });
}

/** Says what a person has to know of the chosen learner before teaching it. */
function note() {
  const { state } = store;
  let text = "";
  if (state?.status === "damaged") text = `“${state.name}” cannot be used: ${state.reason ?? "its files are damaged."}`;
  else if (state?.kind && state.kind !== "classifier") text = `“${state.name}” learns numbers (${state.kind}) and is taught by programs. How well it does is below.`;
  else if (state?.features === "vectors") text = `“${state.name}” learns from vectors and is taught by programs. For pictures, choose another learner or create one.`;
  $("#scene").hidden = !store.takesImages;
  $("#learner-note").hidden = !text;
  say($("#learner-note"), text);
}

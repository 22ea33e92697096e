// What it knows: a card for each class, which stays in its place while it is held.

import { at, call, learnerPath } from "./api.js";
import { $, el, icon, say } from "./dom.js";
import { toast } from "./notices.js";
import { keyOf, labelOf, store, textOf } from "./store.js";
import { begin, end, heldLabel, holdable, show as showTeach } from "./teach.js";

const THUMBNAILS = 3;
const cards = new Map(); // label's key -> card

export function setUp() {
  store.on("choose", () => {
    for (const card of cards.values()) card.node.remove();
    cards.clear();
  });
  store.on("state choose", draw);
  store.on("hold", mark);
  $("#name-field").addEventListener("input", mark);
}

function draw() {
  const classes = store.state?.classes ?? [];
  $("#known").hidden = classes.length === 0;
  const keys = new Set(classes.map(({ label }) => keyOf(label)));
  for (const [key, card] of cards) {
    if (keys.has(key)) continue;
    if (card.node.contains(document.activeElement)) $("#name-field").focus();
    card.node.remove();
    cards.delete(key);
  }
  for (const one of classes) {
    const key = keyOf(one.label);
    const old = cards.get(key);
    if (old?.text !== textOf(one.label)) {
      const card = make(one.label);
      cards.set(key, card);
      if (old) old.node.replaceWith(card.node);
      else $("#classes").append(card.node);
    }
    cards.get(key).update(one);
  }
  mark();
}

function mark() {
  const text = $("#name-field").value.trim();
  const chosen = text ? keyOf(labelOf(text)) : null;
  const held = heldLabel();
  const { takesImages } = store;
  $("#known-hint").hidden = !takesImages;
  for (const [key, card] of cards) {
    card.teach.hidden = !takesImages;
    card.pick.disabled = !takesImages;
    card.pick.setAttribute("aria-pressed", String(key === chosen));
    card.node.classList.toggle("held", held !== null && keyOf(held.label) === key);
  }
}

function choose(label) {
  const field = $("#name-field");
  field.value = textOf(label);
  field.dispatchEvent(new Event("input"));
}

function make(label) {
  const text = textOf(label);
  const pictures = el("span", { class: "thumbs", "aria-hidden": "true" });
  const count = el("span", { class: "count" });
  const pick = el("button", { type: "button", class: "class-pick", "aria-pressed": "false", onclick: () => choose(label) },
    pictures, el("span", { class: "class-name", text }), count);
  const teach = el("button", { type: "button", class: "mini-teach", "aria-label": `Hold to teach ${text}` }, el("span", { class: "dot", "aria-hidden": "true" }), "Teach");
  holdable(teach, () => {
    choose(label);
    begin(label);
  }, end);
  const rename = el("button", { type: "button", class: "icon-button", "aria-label": `Rename ${text}`, title: "Rename", onclick: () => edit() }, icon("pen"));
  const forget = el("button", { type: "button", class: "icon-button", "aria-label": `Forget ${text}`, title: "Forget", onclick: () => ask(`Forget “${text}” and all its examples?`, "Forget", () => change("forget", { label }, `“${text}” is forgotten.`), forget) }, icon("bin"));
  const actions = el("div", { class: "actions" }, teach, rename, forget);
  const node = el("li", { class: "class-card", "data-label": text }, pick, actions);
  const loaded = new Map();

  function back(focus) {
    actions.hidden = false;
    node.querySelector(".in-card")?.remove();
    focus?.focus();
  }

  function put(form, focus) {
    back();
    actions.hidden = true;
    node.append(form);
    focus.focus();
    form.addEventListener("keydown", (event) => event.key === "Escape" && back(rename));
  }

  function ask(question, yes, run, focus, no = "Keep") {
    const keep = el("button", { type: "button", class: "quiet", text: no, onclick: () => back(focus) });
    const go = el("button", { type: "button", class: "danger", text: yes, onclick: () => back(focus) ?? run() });
    put(el("div", { class: "in-card", role: "group", "aria-label": question }, el("p", { text: question }), el("div", { class: "pair" }, go, keep)), keep);
  }

  function edit() {
    const field = el("input", { type: "text", value: String(label), "aria-label": `New name for ${text}`, maxlength: store.about?.limits?.label_length ?? 64, autocomplete: "off", spellcheck: "false" });
    const form = el("form", { class: "in-card" }, field, el("div", { class: "pair" }, el("button", { type: "submit", class: "main", text: "Save" }), el("button", { type: "button", class: "quiet", text: "Cancel", onclick: () => back(rename) })));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      const written = field.value.trim();
      if (!written || written === String(label)) return back(rename);
      const other = labelOf(written);
      const run = () => change("rename", { label, new: other }, `“${text}” is called “${written}” now.`, other);
      const known = store.state.classes.some((one) => keyOf(one.label) === keyOf(other));
      if (known) ask(`“${written}” is known already. Make one of the two, called “${written}”?`, "Join", run, rename, "Cancel");
      else run();
    });
    put(form, field);
    field.select();
  }

  /** Thumbnails are exchanged one by one: those that stay do not flicker. */
  function update({ shown, thumbnails }) {
    say(count, shown === 1 ? "1 example" : `${shown} examples`);
    const wanted = (thumbnails ?? []).slice(-THUMBNAILS);
    for (const [path, image] of loaded) {
      if (wanted.includes(path)) continue;
      image.remove();
      loaded.delete(path);
    }
    for (const path of wanted) {
      if (loaded.has(path)) continue;
      const image = el("img", { src: at(path), alt: "", width: 72, height: 72 });
      image.addEventListener("error", () => image.remove());
      loaded.set(path, image);
      pictures.append(image);
    }
    pictures.classList.toggle("none", wanted.length === 0);
    if (!wanted.length) say(pictures, [...String(label)][0] ?? "");
    else if (pictures.firstChild.nodeType === Node.TEXT_NODE) pictures.firstChild.remove();
  }

  return { node, text, pick, teach, update };
}

async function change(what, json, told, chosen) {
  const before = textOf(json.label);
  try {
    store.put(await call(learnerPath(store.name, `/${what}`), { method: "POST", json }));
    const field = $("#name-field");
    if (field.value.trim() === before) field.value = chosen === undefined ? "" : textOf(chosen);
    mark();
    showTeach();
    toast(told, "good");
  } catch (failure) {
    toast(failure.message);
  }
}

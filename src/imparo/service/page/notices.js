// Short messages in a corner, and the banner at the top.

import { $, el, icon, say } from "./dom.js";

const shown = new Map();
const small = matchMedia("(max-width: 48rem), (max-height: 35rem)");

export function setUp() {
  // On a phone they lie above the card with the button, however high that is.
  new ResizeObserver(([{ target }]) => document.documentElement.style.setProperty("--teach-card", `${target.offsetHeight}px`)).observe($(".teach-card"));
}

/** Puts the messages where they are seen and can be pressed: in the dialog while one is open. */
export function settle() {
  const home = $("dialog[open]") ?? document.body;
  if ($("#toasts").parentNode !== home) home.append($("#toasts"));
}

/** Shows a sentence for a while; the same sentence twice is shown once. */
export function toast(text, kind = "bad") {
  settle();
  const region = $("#toasts");
  let note = shown.get(text);
  if (note) {
    clearTimeout(note.timer);
  } else {
    const remove = () => {
      clearTimeout(note.timer);
      note.node.remove();
      shown.delete(text);
    };
    note = { remove };
    note.node = el(
      "div",
      { class: `toast ${kind}` },
      el("p", { text }),
      el("button", { type: "button", class: "icon-button", "aria-label": "Dismiss", onclick: remove }, icon("close")),
    );
    shown.set(text, note);
    region.append(note.node);
    while (region.children.length > (small.matches ? 1 : 3)) [...shown.values()][0].remove();
  }
  note.timer = setTimeout(note.remove, 4000 + 60 * text.length);
}

export function banner(text) {
  const node = $("#banner");
  node.hidden = !text;
  say(node, text ?? "");
}

// Pictures: dropped, pasted or chosen, several at once.

import { square, whole } from "./camera.js";
import { $, el, say } from "./dom.js";
import { toast } from "./notices.js";
import { store } from "./store.js";

const MOST = 100;

export const images = { name: "image", live: false, ready: () => current !== null, grab, taken, stop() {}, resume() {} };

let list = []; // {file, url, name, width, height, taught}
let current = null;
let changed = () => {};

export function setUp(tell, choose, teachAll) {
  changed = tell;
  const field = $("#file-input");
  field.addEventListener("change", () => {
    add([...field.files]); // a copy: emptying the field empties its list
    field.value = "";
  });
  $("#image-more").addEventListener("click", () => field.click());
  $("#image-clear").addEventListener("click", clear);
  $("#image-all").addEventListener("click", () => teachAll(list.filter(fresh)));
  const view = $("#view-teach");
  const wanted = () => !view.hidden && !$("#learners").open && store.takesImages;
  const over = () => document.body.classList.remove("dropping");
  // Everywhere: a browser leaves the page for a file that is dropped beside the place for it.
  document.addEventListener("dragover", (event) => {
    if (![...event.dataTransfer.types].includes("Files") || event.target.matches?.("[type=file]")) return;
    event.preventDefault();
    document.body.classList.toggle("dropping", wanted());
  });
  document.addEventListener("dragleave", (event) => event.relatedTarget === null && over());
  document.addEventListener("drop", (event) => {
    over();
    if (!event.dataTransfer.files.length || event.target.matches?.("[type=file]")) return;
    event.preventDefault();
    if (!wanted()) return;
    choose();
    add([...event.dataTransfer.files]);
  });
  document.addEventListener("paste", (event) => {
    const files = event.clipboardData?.files ?? [];
    if (!files.length || view.hidden || $("#learners").open) return;
    event.preventDefault();
    choose();
    add([...files]);
  });
  store.on("state", frame);
  new ResizeObserver(frame).observe($("#image-stage"));
}

async function add(files) {
  let first = null;
  const unread = [];
  for (const file of files) {
    if (list.length >= MOST) {
      toast(`${MOST} pictures at once are the most; teach these first.`);
      break;
    }
    try {
      const bitmap = await createImageBitmap(file);
      const { width, height } = bitmap;
      bitmap.close(); // kept, a hundred photographs would fill the memory
      const one = { file, width, height, name: file.name || "pasted picture", url: URL.createObjectURL(file), taught: false };
      list.push(one);
      first ??= one;
    } catch {
      unread.push(file.name || "what was pasted");
    }
  }
  if (unread.length) {
    const [one] = unread;
    const what = unread.length === 1 ? `“${one}” is no picture` : `“${one}” and ${unread.length - 1} more are no pictures`;
    toast(`${what} that this browser can read. JPEG, PNG and WebP work.`);
  }
  if (first) select(first);
}

function clear() {
  for (const { url } of list) URL.revokeObjectURL(url);
  list = [];
  select(null);
  $("#file-input").focus();
}

function select(one) {
  current = one;
  draw();
  changed();
}

function draw() {
  const view = $("#image-view");
  view.hidden = !current;
  if (current) {
    if (view.src !== current.url) view.src = current.url;
    view.alt = current.name;
  } else view.removeAttribute("src");
  $("#image-empty").hidden = list.length > 0;
  $("#image-tools").hidden = list.length === 0;
  frame();
  const strip = $("#image-strip");
  strip.hidden = list.length < 2;
  const had = strip.contains(document.activeElement);
  strip.replaceChildren(...(list.length < 2 ? [] : list.map(item)));
  if (had) $("[aria-current]", strip)?.focus();
  const left = list.filter(fresh).length;
  say($("#image-hint"), list.length > 1 ? `${list.length} pictures, ${left ? `${left} to teach` : "all taught"}.` : cropped() ? "It sees what is inside the frame." : "");
  $("#image-all").hidden = list.length < 2 || left === 0;
  say($("#image-all"), `Teach all ${left}`);
}

function item(one, index) {
  const thumbnail = el("img", { src: one.url, alt: "", width: 56, height: 56 });
  const name = `Picture ${index + 1}, ${one.name}${one.taught ? ", taught" : ""}`;
  const button = el("button", { type: "button", "aria-label": name, "aria-current": one === current ? "true" : null, class: one.taught ? "taught" : null, onclick: () => select(one) }, thumbnail);
  return el("li", {}, button);
}

/** Shows which part of the picture is looked at: the centre square, or all of a drawing. */
function frame() {
  const node = $("#image-frame");
  node.hidden = !current || !cropped();
  if (node.hidden) return;
  const stage = $("#image-stage");
  const scale = Math.min(stage.clientWidth / current.width, stage.clientHeight / current.height);
  node.style.width = node.style.height = `${Math.floor(Math.min(current.width, current.height) * scale)}px`;
}

const cropped = () => store.state?.features !== "pixels";

async function grab(one = current) {
  if (!one) return null;
  const bitmap = await createImageBitmap(one.file);
  try {
    return await (cropped() ? square : whole)(bitmap, bitmap.width, bitmap.height);
  } finally {
    bitmap.close();
  }
}

const fresh = ({ taught, sent }) => !taught && !sent;

/** While a picture is on its way comes the next one: does it know that already? */
function taken(one = current) {
  if (!one) return () => {};
  one.sent = true;
  const from = list.indexOf(current);
  const next = [...list.slice(from), ...list.slice(0, from)].find(fresh);
  select(next ?? current);
  return (taught) => {
    [one.taught, one.sent] = [taught, false];
    draw();
  };
}

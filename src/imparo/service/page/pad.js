// The drawing pad: black ink on white paper, in either theme.

import { $, say } from "./dom.js";

const SIZE = 256; // of what is sent
const CLEARED = null; // an entry among the strokes: the paper was new from here on

export const pad = { name: "draw", live: false, ready: () => strokes().length > 0, grab, taken, stop() {}, resume() {} };

const canvas = $("#pad");
const context = canvas.getContext("2d");
let entries = [];
let now = null; // the stroke being drawn
let pointer = null;
let fresh = false; // what is drawn was sent: the next stroke starts a new drawing
let known = false; // and was taught
let grabbed = null; // the last stroke of what was taken
let changed = () => {};

const strokes = () => entries.slice(entries.lastIndexOf(CLEARED) + 1);

export function setUp(tell) {
  changed = tell;
  canvas.addEventListener("pointerdown", begin);
  canvas.addEventListener("pointermove", move);
  for (const name of ["pointerup", "pointercancel", "lostpointercapture"]) canvas.addEventListener(name, end);
  $("#pad-clear").addEventListener("click", clear);
  $("#pad-undo").addEventListener("click", undo);
  document.addEventListener("keydown", (event) => {
    if (!(event.ctrlKey || event.metaKey) || event.key !== "z" || $("#panel-draw").hidden) return;
    if (event.target.closest("input, dialog") || $("#view-teach").hidden) return;
    event.preventDefault();
    undo();
  });
  paint();
}

function point(event) {
  const box = canvas.getBoundingClientRect();
  return [(event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height];
}

function begin(event) {
  if (pointer !== null || event.button !== 0) return;
  event.preventDefault();
  pointer = event.pointerId;
  canvas.setPointerCapture(pointer);
  if (fresh) entries.push(CLEARED);
  fresh = false;
  now = { width: Number($("#pad-size").value) / 100, points: [point(event)] };
  entries.push(now);
  paint();
}

function move(event) {
  if (event.pointerId !== pointer) return;
  const moves = event.getCoalescedEvents?.() ?? [];
  for (const one of moves.length ? moves : [event]) now.points.push(point(one));
  paint();
}

function end(event) {
  if (event.pointerId !== pointer) return;
  pointer = now = null;
  told();
}

function clear() {
  if (strokes().length) entries.push(CLEARED);
  // Undo brings the last drawing back, not all that ever were.
  const marks = entries.flatMap((entry, index) => (entry === CLEARED ? [index] : []));
  if (marks.length > 1) entries = entries.slice(marks[marks.length - 2] + 1);
  told();
}

function undo() {
  entries.pop();
  told();
}

function taken() {
  const mine = grabbed;
  const shown = () => strokes().at(-1) === mine;
  fresh = shown() && pointer === null; // not where one drew on meanwhile
  known = false;
  told();
  return (taught) => {
    if (!shown()) return;
    known = taught;
    fresh &&= taught; // it stays where it is, to be taught again
    told();
  };
}

function told() {
  if (!strokes().length) fresh = false;
  paint();
  changed();
}

function ink(target, size, stroke) {
  const points = stroke.points.map(([x, y]) => [x * size, y * size]);
  const [first] = points;
  target.lineWidth = stroke.width * size;
  target.lineCap = target.lineJoin = "round";
  target.strokeStyle = "#14171f";
  target.beginPath();
  target.moveTo(...first);
  for (let i = 1; i < points.length - 1; i++) {
    const [x, y] = points[i];
    target.quadraticCurveTo(x, y, (x + points[i + 1][0]) / 2, (y + points[i + 1][1]) / 2);
  }
  target.lineTo(...points[points.length - 1]);
  target.stroke();
}

function draw(target, size) {
  target.fillStyle = "white";
  target.fillRect(0, 0, size, size);
  for (const stroke of strokes()) ink(target, size, stroke);
}

function paint() {
  draw(context, canvas.width);
  const count = strokes().length;
  const hint = $("#pad-hint");
  hint.classList.toggle("below", count > 0);
  say(hint, count === 0 ? "Draw here" : fresh ? `${known ? "Taught. " : ""}Draw the next one.` : "");
  canvas.setAttribute("aria-label", count === 0
    ? "Drawing pad, empty. It needs a pen, finger or mouse; pictures can be chosen under Image."
    : `Drawing pad with ${count} ${count === 1 ? "stroke" : "strokes"}.`);
  $("#pad-clear").disabled = count === 0;
  $("#pad-undo").disabled = entries.length === 0;
}

function grab() {
  if (!pad.ready()) return null;
  grabbed = strokes().at(-1);
  const paper = new OffscreenCanvas(SIZE, SIZE);
  draw(paper.getContext("2d"), SIZE);
  return paper.convertToBlob({ type: "image/png" });
}

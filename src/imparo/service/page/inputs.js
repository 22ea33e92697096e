// Where pictures come from: camera, image files or the drawing pad, one at a time.

import { camera, setUp as setUpCamera } from "./camera.js";
import { $, memory, tabs } from "./dom.js";
import { images, setUp as setUpImages } from "./images.js";
import { pad, setUp as setUpPad } from "./pad.js";
import { store } from "./store.js";

const SOURCES = { camera, image: images, draw: pad };
// Drawings are drawn, whatever photographs were last taken with.
const USUAL = { network: "camera", pixels: "draw" };
let source = camera;
let looks = null; // what the source was chosen for
let listener = () => {};

/** A source: `live`, `ready()`, `grab()` a picture, `stop()`, `resume()`; `taken()` before a picture
 *  is taught returns what to call once it was. */
export const current = () => source;

export function setUp(changed, teachAll) {
  listener = changed;
  const select = tabs($("[role=tablist]", $(".stage-card")), (tab) => pick(tab.dataset.source));
  function pick(name) {
    memory.set(`source.${store.looks}`, name);
    choose(name);
  }
  /** After the chosen learner. */
  function follow() {
    if (store.looks === looks) return;
    looks = store.looks;
    if (!(looks in USUAL)) return source.stop();
    const last = memory.get(`source.${looks}`);
    choose(last in SOURCES ? last : USUAL[looks]);
  }
  function choose(name) {
    if (name !== source.name) source.stop();
    source = SOURCES[name];
    select($(`[data-source="${name}"]`));
    source.resume();
    listener();
  }
  setUpCamera(() => listener(), () => memory.set(`source.${store.looks}`, "camera"));
  setUpImages(() => listener(), () => pick("image"), teachAll);
  setUpPad(() => listener());
  store.on("choose state about", follow);
  follow();
}

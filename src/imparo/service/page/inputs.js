// Where pictures come from: camera, image files or the drawing pad, one at a time.

import { camera, setUp as setUpCamera } from "./camera.js";
import { $, memory, tabs } from "./dom.js";
import { images, setUp as setUpImages } from "./images.js";
import { pad, setUp as setUpPad } from "./pad.js";

const SOURCES = { camera, image: images, draw: pad };
let source = camera;
let listener = () => {};

/** A source: `live`, `ready()`, `grab()` a picture, `taught()` it was, `stop()`, `resume()`. */
export const current = () => source;

export function setUp(changed, teachAll) {
  listener = changed;
  const select = tabs($("[role=tablist]", $(".stage-card")), (tab) => pick(tab.dataset.source));
  function pick(name) {
    memory.set("source", name);
    choose(name);
  }
  function choose(name) {
    if (name !== source.name) source.stop();
    source = SOURCES[name];
    select($(`[data-source="${name}"]`));
    source.resume();
    listener();
  }
  setUpCamera(() => listener());
  setUpImages(() => listener(), () => pick("image"), teachAll);
  setUpPad(() => listener());
  const last = memory.get("source");
  choose(last in SOURCES ? last : "camera");
}

// What the page knows of the server: its learners, the chosen one, and whether it is there.

import { call, learnerPath } from "./api.js";
import { memory } from "./dom.js";

export const FIRST = "objects";

class Store extends EventTarget {
  learners = [];
  name = null; // of the chosen learner
  features = [];
  about = null;
  online = true;
  loaded = false;

  get state() {
    return this.learners.find((learner) => learner.name === this.name) ?? null;
  }

  /** May the chosen learner be taught with images? With none, the page will make one. */
  get takesImages() {
    const { state } = this;
    return state ? state.kind === "classifier" && state.features !== "vectors" && state.status === "open" : true;
  }

  /** What the chosen learner looks at; before anything is known, what the last one did. */
  get looks() {
    if (this.state) return this.state.features;
    return this.loaded ? this.usual : memory.get("looks") ?? this.usual;
  }

  /** What a learner that the page makes looks at. */
  get usual() {
    return !this.features.length || this.feature("network").available ? "network" : "pixels";
  }

  tell(what) {
    this.dispatchEvent(new Event(what));
  }

  on(what, listener) {
    for (const name of what.split(" ")) this.addEventListener(name, listener);
  }

  put(told) {
    const state = whole(told);
    const index = this.learners.findIndex((learner) => learner.name === state.name);
    const old = this.learners[index];
    // Answers may overtake each other; a learner made anew under the same name counts from 0.
    if (old && old.created === state.created && old.number > state.number) return;
    if (old) this.learners[index] = state;
    else this.learners.push(state);
    if (!old) this.tell("learners");
    if (state.name === this.name) this.tell("state");
  }

  choose(name) {
    const changed = this.name !== name;
    this.name = name;
    if (name) memory.set("learner", name);
    memory.set("looks", this.looks);
    if (changed) this.tell("choose");
    this.tell("learners");
    this.tell("state");
  }

  async load() {
    const { learners } = await call("api/learners");
    this.learners = learners.map(whole);
    this.loaded = true;
    const known = (name) => learners.some((learner) => learner.name === name);
    const name = [this.name, memory.get("learner"), FIRST].find(known) ?? learners[0]?.name ?? null;
    this.choose(name);
  }

  async loadFeatures() {
    const [features, about] = await Promise.all([call("api/features"), call("api/about")]);
    this.features = features.features;
    this.about = about;
    this.tell("about");
  }

  feature(name) {
    return this.features.find((feature) => feature.name === name) ?? { name, available: name === "pixels" };
  }

  async refresh() {
    if (this.name) this.put(await call(learnerPath(this.name)));
  }

  /** The chosen learner's name; where there is no learner yet, one is made. */
  async ensure() {
    if (this.name) return this.name;
    this.making ??= this.make().finally(() => (this.making = null));
    return this.making;
  }

  async make() {
    if (!this.features.length) await this.loadFeatures();
    const features = this.usual;
    try {
      this.put(await call("api/learners", { method: "POST", json: { name: FIRST, kind: "classifier", features } }));
    } catch (failure) {
      if (failure.status !== 409) throw failure; // another window was quicker
      await this.load();
    }
    this.choose(FIRST);
    return FIRST;
  }
}

export const store = new Store();

/** A damaged learner tells nothing of what it knew. */
const whole = (state) => ({ n_seen: 0, classes: [], ...state });

/** Labels are any JSON scalar: 7 and "7" are two classes. To learners, true is 1. */
export const keyOf = (label) => JSON.stringify(typeof label === "boolean" ? Number(label) : label);

const PLAIN = /^(true|false|-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?)$/;
let looked = null; // the state of which `mixed` is known
let mixed = false;

/** A label as people read it. Where some are no text, "7" is told from 7. */
export function textOf(label) {
  if (typeof label !== "string" || !PLAIN.test(label)) return String(label);
  const { state } = store;
  if (state !== looked) {
    looked = state;
    mixed = Boolean(state?.classes.some((one) => typeof one.label !== "string"));
  }
  return mixed ? `"${label}"` : label;
}

/** The class that a written name means, or the name itself as a new one.
 *
 * The same letters can be written in two ways, é as one sign or as two: they are one name.
 */
export function labelOf(text) {
  const classes = store.state?.classes ?? [];
  const composed = text.normalize("NFC");
  const ways = [(label) => textOf(label) === text, (label) => String(label) === text, (label) => textOf(label).normalize("NFC") === composed];
  for (const way of ways) {
    const found = classes.find(({ label }) => way(label));
    if (found) return found.label;
  }
  return composed;
}

// Making elements. Text always goes in as text: a label may contain anything.

export const $ = (selector, root = document) => root.querySelector(selector);

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "text") node.textContent = value;
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

export function el(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

export function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

const ICONS = {
  close: "M6 6l12 12M18 6L6 18",
  pen: "M4 20l1-4.5L16.5 4l3.5 3.5L8.5 19zM14 6.5l3.5 3.5",
  bin: "M5 7h14M10 7V4.5h4V7M7 7l.8 12.5h8.4L17 7M10.3 10.5v6M13.7 10.5v6",
};

export function icon(name) {
  return svg(
    "svg",
    { viewBox: "0 0 24 24", width: 20, height: 20, "aria-hidden": "true", class: "icon" },
    svg("path", { d: ICONS[name] }),
  );
}

/** Sets text only where it differs, so that screen readers are not told the same twice. */
export function say(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/** A row of tabs: click, arrow keys, Home and End. `choose` shows what belongs to a tab. */
export function tabs(list, choose) {
  const all = [...list.querySelectorAll("[role=tab]")];
  const select = (tab) => {
    for (const other of all) {
      other.setAttribute("aria-selected", String(other === tab));
      other.tabIndex = other === tab ? 0 : -1;
      document.getElementById(other.getAttribute("aria-controls")).hidden = other !== tab;
    }
  };
  for (const tab of all) tab.addEventListener("click", () => choose(tab));
  list.addEventListener("keydown", (event) => {
    const here = all.indexOf(document.activeElement);
    const to = { ArrowRight: here + 1, ArrowLeft: here - 1, Home: 0, End: all.length - 1 }[event.key];
    if (to === undefined || here < 0) return;
    event.preventDefault();
    const tab = all[(to + all.length) % all.length];
    tab.focus();
    choose(tab);
  });
  return select;
}

export const percent = (share) => `${Math.round(100 * share)} %`;

export function bytes(count) {
  if (count < 1000) return `${Math.round(count)} B`;
  const units = ["kB", "MB", "GB"];
  let power = 0;
  let value = count / 1000;
  while (value >= 999.5 && power < 2) [value, power] = [value / 1000, power + 1];
  return `${short(value)} ${units[power]}`;
}

/** A number in three digits, as people write it. */
export function short(value) {
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 100) return String(Math.round(value));
  if (size < 0.001) return value.toExponential(0);
  return String(Number(value.toPrecision(size >= 1 ? 3 : 2)));
}

export const wait = (ms) => new Promise((done) => setTimeout(done, ms));

/** At most one call every `ms`, the last one always among them; `run` may take its time. */
export function throttled(ms, run) {
  let busy = false;
  let again = false;
  return async function call() {
    again = true;
    if (busy) return;
    busy = true;
    while (again) {
      again = false;
      await run();
      await wait(ms);
    }
    busy = false;
  };
}

/** What the browser may remember, where it lets us. */
export const memory = {
  get(key) {
    try {
      return localStorage.getItem(`imparo.${key}`);
    } catch {
      return null;
    }
  },
  set(key, value) {
    try {
      localStorage.setItem(`imparo.${key}`, value);
    } catch {
      // A private window: nothing is remembered, and nothing depends on it.
    }
  },
};

// Staying in touch: a socket that says what changed; polling without it; a banner without both.

import { at, ENDED, Failure, health, learnerPath } from "./api.js";
import { banner, toast } from "./notices.js";
import { store } from "./store.js";

const AWAY = "Connection lost, trying again. Nothing taught is lost.";

let socket = null;
let timer = null;
let ended = false;
let ticking = false;
let awayTries = 0;
let socketTries = 0;
let nextSocket = 0;
let lastId = 0;
const pending = new Map();

const listening = () => socket?.readyState === WebSocket.OPEN;

function online(is) {
  if (store.online === is || ended) return;
  store.online = is;
  banner(is ? null : AWAY);
  if (!is) later(500);
  store.tell("online");
}

function later(ms) {
  clearTimeout(timer);
  timer = setTimeout(tick, ms);
}

/** Runs while no socket is open, or an answer was lost: asks, and tries a socket now and then. */
async function tick() {
  if (ended || ticking || (listening() && store.online)) return;
  ticking = true;
  try {
    if (!store.online || !store.loaded) await comeBack();
    else if (store.name) await store.refresh();
    else await store.load();
    awayTries = 0;
    if (store.name && !listening() && performance.now() >= nextSocket) open();
    later(2000);
  } catch (failure) {
    if (failure.status === 404) await store.load().catch(() => {});
    else if (!failure.away && !failure.busy) toast(failure.message);
    later(failure.away ? Math.min(4000, 500 * 1.6 ** awayTries++) : 2000);
  } finally {
    ticking = false;
  }
}

async function comeBack() {
  await store.load();
  if (!store.about) await store.loadFeatures();
  online(true);
  nextSocket = 0;
}

function open() {
  close();
  // Without a socket (a proxy that knows none, say) polling goes on, and this is tried ever less.
  nextSocket = performance.now() + Math.min(60000, 1000 * 2 ** socketTries++);
  const mine = (socket = new WebSocket(at(learnerPath(store.name, "/stream")).replace(/^http/, "ws")));
  mine.binaryType = "arraybuffer";
  mine.onopen = () => mine.send(JSON.stringify({ id: "watch", watch: true }));
  mine.onmessage = ({ data }) => {
    if (mine !== socket) return;
    const message = JSON.parse(data);
    if (message.event === "state") store.put(message.state);
    else if (message.event === "end") gone(mine);
    else if (message.id === "watch" && message.error) mine.close();
    else if (message.id === "watch") [socketTries, nextSocket] = [0, 0];
    else settle(message);
  };
  mine.onclose = () => {
    if (mine !== socket) return;
    socket = null;
    drop();
    later(0);
  };
}

/** The learner was deleted by another window or a program, and perhaps made anew. */
async function gone(mine) {
  const { name } = store;
  nextSocket = 0;
  await store.load().catch(() => {});
  if (!store.learners.some((learner) => learner.name === name)) toast(`“${name}” was deleted elsewhere.`);
  mine.close();
}

function close() {
  const old = socket;
  socket = null;
  hangUp(old);
  drop();
}

/** Closes a socket; one that is still being opened after that, or browsers complain. */
export function hangUp(old) {
  if (old?.readyState === WebSocket.CONNECTING) old.onopen = () => old.close();
  else old?.close();
}

function drop() {
  for (const { fail } of pending.values()) fail(new Failure("The server does not answer.", 0, 1));
  pending.clear();
}

function settle({ id, result, error, status }) {
  const promise = pending.get(id);
  pending.delete(id);
  if (error) promise?.fail(new Failure(error, status, 1));
  else promise?.done(result);
}

/** Teaches an image under a label that is no text: only the socket keeps its type. */
export async function teachBySocket({ learner, label, key, blob }) {
  if (!store.learners.some(({ name }) => name === learner)) throw new Failure(`There is no learner “${learner}” any more.`, 404);
  if (store.name !== learner) throw new Failure(`“${learner}” is not in use now; what was shown to it was not taught.`, 409);
  if (!listening()) throw new Failure("The server does not answer.", 0, 1);
  const id = ++lastId;
  const header = new TextEncoder().encode(JSON.stringify({ id, teach_image: { label, key } }));
  const message = new Uint8Array(4 + header.length + blob.size);
  new DataView(message.buffer).setUint32(0, header.length, true);
  message.set(header, 4);
  message.set(new Uint8Array(await blob.arrayBuffer()), 4 + header.length);
  return new Promise((done, fail) => {
    pending.set(id, { done, fail });
    if (listening()) socket.send(message);
    else drop();
  });
}

/** After something was changed here: the socket tells it anyway, polling would be late. */
export async function changed() {
  if (!listening()) await store.refresh().catch(() => {});
}

export function start() {
  health.addEventListener("away", () => online(false));
  health.addEventListener("reachable", () => {
    ended = false;
    if (!store.online && !ticking) later(0);
  });
  health.addEventListener("ended", () => {
    if (ended) return;
    online(false);
    ended = true;
    banner(ENDED);
    clearTimeout(timer);
    close();
  });
  store.on("choose", () => {
    close();
    socketTries = 0;
    nextSocket = 0;
    if (store.name && store.online) open();
    else later(0);
  });
  addEventListener("online", () => later(0));
  // Others may have made or deleted learners meanwhile, or opened the link anew.
  document.addEventListener("visibilitychange", () => !document.hidden && (store.online || ended) && store.load().catch(() => {}));
  later(0);
}

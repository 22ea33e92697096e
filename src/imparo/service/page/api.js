// Requests to the server, and what can go wrong with them.

import { wait } from "./dom.js";

const BASE = new URL(".", document.baseURI);
export const ENDED = "The session has ended: open the link from the terminal again.";

/** Where a path of the API is, also where the page is served below a prefix. */
export const at = (path) => new URL(path.replace(/^\//, ""), BASE).href;
export const learnerPath = (name, rest = "") => `api/learners/${encodeURIComponent(name)}${rest}`;

export class Failure extends Error {
  constructor(message, status, retryAfter = 0) {
    super(message);
    this.status = status; // 0: the server did not answer
    this.retryAfter = retryAfter; // seconds
  }

  /** The token or its cookie is no longer good; another window may get a new one. */
  get ended() {
    return this.status === 401;
  }

  get away() {
    return this.status === 0;
  }

  get busy() {
    return this.status === 429 || this.status === 503;
  }
}

/** Tells "reachable", "away" and "ended"; `link.js` listens. */
export const health = new EventTarget();

async function once(path, { method = "GET", json, body, type, timeout = 20000 }) {
  const headers = {};
  if (json !== undefined) [body, type] = [JSON.stringify(json), "application/json"];
  if (type) headers["Content-Type"] = type;
  let response;
  let content;
  try {
    response = await fetch(at(path), { method, headers, body, cache: "no-store", signal: AbortSignal.timeout(timeout) });
    content = await response.text();
  } catch {
    health.dispatchEvent(new Event("away"));
    throw new Failure("The server does not answer.", 0, 1);
  }
  if (response.status !== 401) health.dispatchEvent(new Event("reachable"));
  let answer = null;
  try {
    answer = content ? JSON.parse(content) : null;
  } catch {
    // A proxy's page, perhaps: the status below says enough.
  }
  if (response.ok) return answer;
  if (response.status === 401) {
    health.dispatchEvent(new Event("ended"));
    throw new Failure(ENDED, 401, 5);
  }
  const after = Number(response.headers.get("Retry-After"));
  const said = typeof answer?.error === "string" ? answer.error : `The server answered ${response.status}.`;
  throw new Failure(said, response.status, after > 0 ? Math.min(after, 30) : 1);
}

/** One request. While the server is too busy it is made again, `patience` times. */
export async function call(path, options = {}) {
  for (let patience = options.patience ?? 3; ; patience--) {
    try {
      return await once(path, options);
    } catch (failure) {
      if (!failure.busy || patience <= 0) throw failure;
      await wait(1000 * failure.retryAfter);
    }
  }
}

/**
 * Keeps the pages' data up to date with the server's stream, or with a request every 5 s where a stream is not
 * possible.
 *
 * A stream has the topics of one page. The data of other pages is kept, so a page that is opened again shows its last
 * data immediately until the new state arrives.
 */
import type { LockAnswer, StreamChange, StreamState } from "../api.js";
import { setServerTime } from "./clock.js";
import { hasAll, type Known, type Liveness, livenessOf, merged } from "./known.js";
import { poll, type Subject } from "./polling.js";
import { refreshSession } from "./requests.js";
import { Store } from "./store.js";

/** The data of the pages. */
export const known: Store<Known> = new Store<Known>({});
/** How the data is kept up to date. */
export const liveness: Store<Liveness> = new Store<Liveness>("connecting");

/** If the stream is not open after this time, polling replaces it. */
const PATIENCE_MS = 5_000;
/** The polling interval. */
const POLL_MS = 5_000;
/** The server sends something at least every 15 s. A stream that is silent for this long is broken. */
const SILENCE_MS = 35_000;
/** While polling, the stream is tried again at this interval. */
const RETRY_STREAM_MS = 20_000;

let subject: Subject | undefined;
let stream: EventSource | undefined;
let patience: ReturnType<typeof setTimeout> | undefined;
let retry: ReturnType<typeof setTimeout> | undefined;
let silence: ReturnType<typeof setTimeout> | undefined;
/** Whether this stream has delivered all topics of the page. */
let isComplete = false;
let polling: ReturnType<typeof setInterval> | undefined;

/** Follows a subject, replacing the previous one. */
export function follow(next: Subject): void {
  subject = next;
  if (liveness.value !== "stopped") {
    connect();
    return;
  }
  // While updates are stopped, a page that has no data yet still needs to load once.
  poll(next).then(
    (state) => {
      if (next === subject && liveness.value === "stopped") apply(state, true);
    },
    () => undefined,
  );
}

/** Stops the updates, or resumes them with a complete state. */
export function toggleStopped(): void {
  if (liveness.value === "stopped") {
    liveness.set("connecting");
    connect();
  } else {
    disconnect();
    liveness.set("stopped");
  }
}

/** Ends the stream and polling, for example after signing out. */
export function disconnect(): void {
  stream?.close();
  stream = undefined;
  endPatience();
  clearTimeout(silence);
  clearTimeout(retry);
  clearInterval(polling);
  polling = undefined;
}

/** Shows the lock from an action's response before the stream delivers the change. */
export function learn(lock: LockAnswer): void {
  setServerTime(lock.atMs);
  apply({ v: 1, atMs: lock.atMs, lock });
}

function connect(): void {
  clearTimeout(retry);
  clearTimeout(silence);
  endPatience();
  stream?.close();
  if (subject === undefined) return;
  isComplete = false;
  if (liveness.value === "offline") liveness.set("connecting");
  const query = new URLSearchParams({ topics: subject.topics.join(",") });
  if (subject.kind !== undefined) query.set("kind", subject.kind);
  if (subject.name !== undefined) query.set("name", subject.name);
  if (subject.key !== undefined) query.set("key", subject.key);
  const source = new EventSource(`api/events?${query.toString()}`);
  stream = source;
  const hear = (type: string, use: (data: unknown) => void): void =>
    source.addEventListener(type, ({ data }: MessageEvent<string>) => {
      if (stream !== source) return;
      isOpen();
      use(JSON.parse(data));
      // Ignores a stream that has been replaced after `end`.
      if (stream === source) liveness.set(livenessOf(known.value.store, isComplete));
    });
  source.addEventListener("open", () => {
    if (stream !== source) return;
    isOpen();
    // A reopened stream continues where it left off and may have no changes to send.
    if (isComplete) liveness.set(livenessOf(known.value.store, isComplete));
  });
  hear("state", (data) => {
    const state = data as StreamState;
    isComplete = hasAll(subject?.topics ?? [], state);
    apply(state, true);
  });
  hear("change", (data) => apply(data as StreamChange));
  hear("beat", () => undefined);
  hear("end", () => {
    disconnect();
    liveness.set("connecting");
    refreshSession().then(connect, startPolling);
  });
  source.addEventListener("error", () => {
    if (stream !== source) return;
    // EventSource reconnects by itself, unless the request was refused.
    if (source.readyState === EventSource.CLOSED) startPolling();
    else {
      liveness.set("connecting");
      waitForStream();
    }
  });
  waitForStream();
}

function isOpen(): void {
  endPatience();
  clearInterval(polling);
  polling = undefined;
  clearTimeout(silence);
  silence = setTimeout(startPolling, SILENCE_MS);
}

/** Starts the timer at the first failure; further failures do not restart it. */
function waitForStream(): void {
  patience ??= setTimeout(startPolling, PATIENCE_MS);
}

function endPatience(): void {
  clearTimeout(patience);
  patience = undefined;
}

function startPolling(): void {
  stream?.close();
  stream = undefined;
  endPatience();
  clearTimeout(silence);
  if (liveness.value !== "offline" && liveness.value !== "polling") liveness.set("connecting");
  clearTimeout(retry);
  retry = setTimeout(connect, RETRY_STREAM_MS);
  polling ??= setInterval(pollOnce, POLL_MS);
  pollOnce();
}

function pollOnce(): void {
  const asked = subject;
  if (asked === undefined) return;
  poll(asked).then(
    (state) => {
      if (polling === undefined || asked !== subject) return;
      liveness.set(state.store.state === "down" ? "down" : "polling");
      apply(state, true);
    },
    () => {
      if (polling !== undefined) liveness.set("offline");
    },
  );
}

function apply(news: StreamState | StreamChange, isWhole = false): void {
  setServerTime(news.atMs);
  known.set(merged(known.value, news, isWhole));
}

/**
 * What the pages show, kept up to date by the server's stream; by asking every 5 s where no stream gets through.
 *
 * A stream follows the topics of one page. What other pages showed last stays here, so that going back to a list finds it at once,
 * as long as it was, and the new state replaces it when it comes.
 */
import type { LockAnswer, StreamChange, StreamState } from "../api.js";
import { setServerTime } from "./clock.js";
import { hasAll, type Known, type Liveness, livenessOf, merged } from "./known.js";
import { poll, type Subject } from "./polling.js";
import { refreshSession } from "./requests.js";
import { Store } from "./store.js";

/** What the pages show. */
export const known: Store<Known> = new Store<Known>({});
/** How it is kept up to date. */
export const liveness: Store<Liveness> = new Store<Liveness>("connecting");

/** A stream that is not open by then is replaced by asking. */
const PATIENCE_MS = 5_000;
/** How often it is asked instead. */
const POLL_MS = 5_000;
/** The server says something at least every 15 s. A stream that is silent for so long has broken without a word. */
const SILENCE_MS = 35_000;
/** While it is asked, the stream is tried again so often. */
const RETRY_STREAM_MS = 20_000;

let subject: Subject | undefined;
let stream: EventSource | undefined;
let patience: ReturnType<typeof setTimeout> | undefined;
let retry: ReturnType<typeof setTimeout> | undefined;
let silence: ReturnType<typeof setTimeout> | undefined;
/** Whether this stream has brought all topics of the page. */
let isComplete = false;
let polling: ReturnType<typeof setInterval> | undefined;

/** Follows this from now on, in place of what was followed before. */
export function follow(next: Subject): void {
  subject = next;
  if (liveness.value !== "stopped") {
    connect();
    return;
  }
  // Stopped means that nothing moves; a page that was not seen yet has to come from somewhere all the same.
  poll(next).then(
    (state) => {
      if (next === subject && liveness.value === "stopped") apply(state, true);
    },
    () => undefined,
  );
}

/** Stops, or goes on with the whole state. */
export function toggleStopped(): void {
  if (liveness.value === "stopped") {
    liveness.set("connecting");
    connect();
  } else {
    disconnect();
    liveness.set("stopped");
  }
}

/** Ends everything, as when nobody is signed in. */
export function disconnect(): void {
  stream?.close();
  stream = undefined;
  endPatience();
  clearTimeout(silence);
  clearTimeout(retry);
  clearInterval(polling);
  polling = undefined;
}

/** Something that an action has answered: it counts before the stream says the same. */
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
      // After `end` nothing more comes.
      if (stream === source) liveness.set(livenessOf(known.value.store, isComplete));
    });
  source.addEventListener("open", () => {
    if (stream !== source) return;
    isOpen();
    // A stream that is open again goes on where it was, and may have nothing to say.
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
    // It tries again by itself, unless it was refused.
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

/** From the first failure on, and not anew with each further one. */
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

/**
 * What the pages show, kept up to date by the server's stream; by asking every 5 s where no stream gets through.
 *
 * A stream follows the topics of one page. What other pages showed last stays here, so that going back to a list finds it at once,
 * as long as it was, and the new state replaces it when it comes.
 */
import type {
  ClientView,
  ElectionView,
  LockAnswer,
  LockRow,
  RedisAnswer,
  SemaphoreView,
  Stamped,
  StoreView,
  StreamChange,
  StreamState,
} from "../api.js";
import { setServerTime } from "./clock.js";
import { poll, type Subject } from "./polling.js";
import { refreshSession } from "./requests.js";
import { Store } from "./store.js";

/** All that is known now; undefined until it came, null if it cannot be read now. */
export interface Known {
  readonly store?: StoreView | undefined;
  readonly locks?: { readonly rows: ReadonlyMap<string, LockRow>; readonly isCut: boolean } | null | undefined;
  readonly lock?: LockAnswer | null | undefined;
  readonly clients?: readonly ClientView[] | null | undefined;
  readonly semaphores?: readonly SemaphoreView[] | null | undefined;
  readonly elections?: readonly ElectionView[] | null | undefined;
  readonly redis?: RedisAnswer | null | undefined;
}

/**
 * How it is kept up to date. `live`: by the stream; `polling`: by asking; `offline`: the console itself does not answer;
 * `stopped`: not at all, since the visitor wants to read in peace.
 */
export type Liveness = "connecting" | "live" | "polling" | "offline" | "stopped";

/** What the pages show. */
export const known: Store<Known> = new Store<Known>({});
/** How it is kept up to date. */
export const liveness: Store<Liveness> = new Store<Liveness>("connecting");

/** A stream that is not open by then is replaced by asking. */
const PATIENCE_MS = 5_000;
/** How often it is asked instead. */
const POLL_MS = 5_000;
/** While it is asked, the stream is tried again so often. */
const RETRY_STREAM_MS = 20_000;

let subject: Subject | undefined;
let stream: EventSource | undefined;
let patience: ReturnType<typeof setTimeout> | undefined;
let retry: ReturnType<typeof setTimeout> | undefined;
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
  endPatience();
  stream?.close();
  if (subject === undefined) return;
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
      isLive();
      use(JSON.parse(data));
    });
  source.addEventListener("open", () => {
    if (stream === source) isLive();
  });
  hear("state", (data) => apply(data as StreamState, true));
  hear("change", (data) => apply(data as StreamChange));
  hear("end", () => {
    disconnect();
    liveness.set("connecting");
    refreshSession().then(connect, startPolling);
  });
  source.addEventListener("error", () => {
    if (stream !== source) return;
    // It tries again by itself, unless it was refused.
    if (source.readyState === EventSource.CLOSED) startPolling();
    else waitForStream();
  });
  waitForStream();
}

function isLive(): void {
  endPatience();
  clearInterval(polling);
  polling = undefined;
  liveness.set("live");
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
      liveness.set("polling");
      apply(state, true);
    },
    () => {
      if (polling !== undefined) liveness.set("offline");
    },
  );
}

function apply(news: StreamState | StreamChange, isWhole = false): void {
  setServerTime(news.atMs);
  const { locks, v: _v, atMs: _atMs, ...others } = news as StreamChange & Stamped;
  // Absent means unchanged, and null that it cannot be read now; both stand in what came.
  let next: Known = { ...known.value, ...others };
  if (locks === null) next = { ...next, locks: null };
  else if (locks !== undefined) next = { ...next, locks: mergeRows(locks, isWhole) };
  known.set(next);
}

function mergeRows(
  news: NonNullable<StreamState["locks"]> | NonNullable<StreamChange["locks"]>,
  isWhole: boolean,
): Known["locks"] {
  const rows = new Map(isWhole ? [] : known.value.locks?.rows);
  if ("removed" in news) for (const id of news.removed) rows.delete(id);
  for (const row of "changed" in news ? news.changed : news.rows) rows.set(row.id, row);
  return { rows, isCut: news.isCut };
}

/**
 * What has happened to names, kept for a while: a capped stream for each, written by whoever wants it, in a request of its own.
 * The scripts of locks know nothing of it, and no lock waits for it.
 */

import { hostname } from "node:os";
import { pid } from "node:process";
import { adminAppendHistory } from "../generated/admin-scripts.js";
import type { Holdfast, Store } from "../index.js";
import type { Filled } from "../internal.js";
import { call, checkKnown, checkLabel, checkName, checkWhole, lockKeys, show } from "../internal.js";
import { type Place, placeOf } from "./place.js";

/**
 * What can be told of a name.
 *
 * - `granted`: a hold began. `released`, `lost`, `forced`: it ended, by its holder, without it, or by somebody else
 * - `expired`: it had ended before its holder gave it back, and nobody was harmed
 * - `skipped`: somebody did not run, since the lock did not allow it
 * - `paused`, `resumed`: by a person
 */
export type HistoryWord = "granted" | "released" | "lost" | "expired" | "forced" | "skipped" | "paused" | "resumed";

const WORDS: readonly HistoryWord[] = [
  "granted",
  "released",
  "lost",
  "expired",
  "forced",
  "skipped",
  "paused",
  "resumed",
];

/** One thing that has happened. */
export interface HistoryEvent {
  readonly what: HistoryWord;
  /** Kind of the lock, such as `mutex`. */
  readonly kind: string;
  /** Name of the lock, 1 to 512 bytes. */
  readonly name: string;
  /** The `key` option of a mutex. */
  readonly key?: string | undefined;
  /** Of whose hold, or of who did not run; of a pause, or its end, the `owner` of the pause. At most 2,048 bytes. */
  readonly owner?: string | undefined;
  readonly token?: number | undefined;
  /** Where the holder is, or who did not run; with `pid` and `clientName`. @default this process; of `forced` nothing */
  readonly host?: string | undefined;
  readonly pid?: number | undefined;
  readonly clientName?: string | undefined;
  readonly label?: string | undefined;
  /** From the call to the grant, in ms. */
  readonly waitedMs?: number | undefined;
  /** From the grant to the end, in ms. */
  readonly heldMs?: number | undefined;
  /** Why; at most 1,024 bytes. */
  readonly reason?: string | undefined;
  /** Of a scheduled run: which time it was for; at most 1,024 bytes. */
  readonly tick?: string | undefined;
  /** Of a run that failed: the name of its error; at most 1,024 bytes. */
  readonly errorName?: string | undefined;
  /** Who did it, if that is not the holder; at most 1,024 bytes. */
  readonly by?: string | undefined;
  /** Of a pause: until when, in ms since 1970. */
  readonly untilAtMs?: number | undefined;
  /** How long ago, in ms. @default 0 */
  readonly agoMs?: number | undefined;
}

/** How much is kept. */
export interface KeepOptions {
  /** About how many events of each name: a few more, never fewer. 10 to 100,000. @default 1_000 */
  readonly maxEntries?: number | undefined;
  /** How long after the last one was added, in ms: 1 minute to a year. @default 30 days */
  readonly keepMs?: number | undefined;
}

/** The same, checked. */
export type Keep = Filled<KeepOptions>;

const A_MONTH_MS = 2_592_000_000;
/** So many at a time, so that no server is kept busy. */
const MOST_IN_ONE = 200;

/**
 * Adds to what is told of a name. For programs that act in another's place, such as one that releases a lock by force; what
 * this process does with its own locks is told by `recordHistory`.
 *
 * @throws StoreError   it may not have been added; adding it again is safe for holds, and tells all else twice
 * @throws ClosedError  this Holdfast was closed
 * @throws TypeError, RangeError  a wrong event or option; nothing was sent
 */
export async function appendHistory(holdfast: Holdfast, event: HistoryEvent, options: KeepOptions = {}): Promise<void> {
  const checked = checkEvent(event);
  const keep = checkKeep(options);
  const place = placeOf(holdfast);
  await append(place, checked.name, [{ text: textOf(place, checked), agoMs: checked.agoMs ?? 0 }], keep);
}

/** One event, written. */
export interface Written {
  readonly text: string;
  readonly agoMs: number;
}

/** Adds events of one name, oldest first; on several servers to all of them. @throws StoreError  none has taken them */
export async function append(place: Place, name: string, events: readonly Written[], keep: Keep): Promise<void> {
  const history = historyKey(place, name);
  const to = async (store: Store): Promise<void> => {
    for (let at = 0; at < events.length; at += MOST_IN_ONE) {
      // Rounded down: nothing is told to have been before it was.
      const lines = events.slice(at, at + MOST_IN_ONE).map(({ text, agoMs }) => `${Math.floor(agoMs)} ${text}\n`);
      const args = { entries: lines.join(""), most: keep.maxEntries, keepMs: keep.keepMs };
      await call({ store, name }, adminAppendHistory, { history }, args, place.timeoutMs);
    }
  };
  await Promise.any(place.stores.map(to)).catch((error: unknown) => {
    throw error instanceof AggregateError ? error.errors[0] : error;
  });
}

/** Where the history of a name is: in the slot of its locks. */
export function historyKey({ prefix }: Pick<Place, "prefix">, name: string): string {
  return lockKeys(prefix, "history", name).lock;
}

/** As it is written. What tells it from all others is in it: the hold that it speaks of, or an id of its own. */
export function textOf({ session, clientName }: Place, told: HistoryEvent & { readonly id?: string }): string {
  const { agoMs: _, name: __, ...event } = told;
  const id = event.token === undefined ? (event.id ?? session.runtime.newClientId()) : undefined;
  const isOther = event.host !== undefined || event.what === "forced";
  const here = !isOther ? { host: hostname(), pid, clientName: clientName || undefined } : {};
  return JSON.stringify({ ...event, ...here, id });
}

/** @throws TypeError, RangeError */
export function checkKeep(options: KeepOptions): Keep {
  const { maxEntries = 1_000, keepMs = A_MONTH_MS } = checkKnown(options, ["maxEntries", "keepMs"]);
  checkWhole("maxEntries", maxEntries, 10, 100_000);
  checkWhole("keepMs", keepMs, 60_000, 31_536_000_000);
  return { maxEntries, keepMs };
}

const EVENT_FIELDS = [
  "what",
  "kind",
  "name",
  "key",
  "owner",
  "token",
  "host",
  "pid",
  "clientName",
  "label",
  "waitedMs",
  "heldMs",
  "reason",
  "tick",
  "errorName",
  "by",
  "untilAtMs",
  "agoMs",
] as const;

const LONGEST_MS = Number.MAX_SAFE_INTEGER;

function checkEvent(event: HistoryEvent): HistoryEvent {
  checkKnown(event, EVENT_FIELDS);
  if (event === undefined || !WORDS.includes(event.what)) {
    throw new TypeError(`what must be one of ${WORDS.join(", ")}; got ${show(event?.what)}`);
  }
  checkName(event.name);
  for (const field of ["kind", "key", "owner", "host", "clientName", "reason", "tick", "errorName", "by"] as const) {
    const text: unknown = event[field];
    if (text === undefined && field !== "kind") continue;
    if (typeof text !== "string") throw new TypeError(`${field} must be a string; got ${show(text)}`);
    // That of a pause has the words of a person in it, percent-encoded.
    const most = field === "owner" ? 2_048 : 1_024;
    if (Buffer.byteLength(text) > most)
      throw new RangeError(`${field} must be at most ${most} bytes; got ${show(text)}`);
  }
  if (event.label !== undefined) checkLabel(event.label);
  for (const field of ["token", "pid", "waitedMs", "heldMs", "untilAtMs", "agoMs"] as const) {
    const number: unknown = event[field];
    if (number === undefined) continue;
    if (typeof number !== "number" || !(number >= 0 && number <= LONGEST_MS)) {
      throw new RangeError(`${field} must be a number from 0 to ${LONGEST_MS}; got ${show(number)}`);
    }
  }
  return event;
}

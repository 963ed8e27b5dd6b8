/**
 * Writes the history of locks: one capped stream per name, kept for a limited time. A program that wants a history
 * writes it in separate requests. Lock scripts do not use it, and no lock waits for it.
 */

import { hostname } from "node:os";
import { pid } from "node:process";
import { call } from "../core/call.js";
import { checkLabel, checkName, lockKeys, show } from "../core/keys.js";
import type { Filled } from "../core/options.js";
import { checkWhole } from "../core/options.js";
import type { Store } from "../core/store.js";
import { adminAppendHistory } from "../generated/admin.js";
import type { Holdfast } from "../holdfast.js";
import { checkKnown } from "../holdfast-options.js";
import { type Place, placeOf } from "./place.js";

/**
 * What happened to a lock.
 *
 * - `granted`: a hold began
 * - `released`: its holder released it
 * - `lost`: its lease ended before its holder released it
 * - `forced`: it was force-released
 * - `expired`: its lease ended before its holder released it, but the lock was not granted to anyone else
 * - `skipped`: a run was skipped because it could not get the lock
 * - `paused`, `resumed`: an operator paused the lock or ended the pause
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

/** An event in the history of a lock. */
export interface HistoryEvent {
  /** What happened. */
  readonly what: HistoryWord;
  /** The kind of the lock, such as `mutex`. At most 1,024 bytes. */
  readonly kind: string;
  /** The name of the lock, 1 to 512 bytes. */
  readonly name: string;
  /** The `key` option of a mutex. At most 1,024 bytes. */
  readonly key?: string | undefined;
  /** The owner of the hold, of the skipped run, or of the pause. At most 2,048 bytes. */
  readonly owner?: string | undefined;
  /** The fencing token of the hold. */
  readonly token?: number | undefined;
  /**
   * The host of the holder or of the process that skipped the run. At most 1,024 bytes.
   * @default the host of this process, with its process id and client name; for `forced`, all three are left out
   */
  readonly host?: string | undefined;
  /** The process id that goes with `host`. */
  readonly pid?: number | undefined;
  /** The client name that goes with `host`. At most 1,024 bytes. */
  readonly clientName?: string | undefined;
  /** The label of the hold or of the pause. At most 256 bytes. */
  readonly label?: string | undefined;
  /** The time from the call to the grant, in ms. */
  readonly waitedMs?: number | undefined;
  /** The time from the grant to the end, in ms. For `resumed`, the length of the pause. */
  readonly heldMs?: number | undefined;
  /** Why it happened. At most 1,024 bytes. */
  readonly reason?: string | undefined;
  /** For a scheduled run, the time that it was scheduled for. At most 1,024 bytes. */
  readonly tick?: string | undefined;
  /** For a failed run, the name of its error. At most 1,024 bytes. */
  readonly errorName?: string | undefined;
  /** The person or program that did it, if not the holder. At most 1,024 bytes. */
  readonly by?: string | undefined;
  /** For a pause, its end, in ms since 1970. */
  readonly untilAtMs?: number | undefined;
  /** How long ago it happened, in ms. @default 0 */
  readonly agoMs?: number | undefined;
}

/** How much of a history is kept. */
export interface KeepOptions {
  /** The number of events to keep per name. The server keeps a few more, never fewer. 10 to 100,000. @default 1_000 */
  readonly maxEntries?: number | undefined;
  /** How long to keep the history after its latest event, in ms: 60,000 to 31,536,000,000, a year. @default 30 days */
  readonly keepMs?: number | undefined;
}

/** Checked `KeepOptions` with defaults. */
export type Keep = Filled<KeepOptions>;

const A_MONTH_MS = 2_592_000_000;
/** Maximum number of events per request, so that no request occupies a server for a long time. */
const MOST_IN_ONE = 200;

/**
 * Adds an event to the history of a lock. Meant for programs that act on behalf of others, for example a tool that
 * force-releases locks. `recordHistory` records what this process does with its own locks.
 *
 * @throws StoreError   the event may not have been added. Adding it again is safe if it has a `token`; an event without
 *                      one may then appear twice
 * @throws ClosedError  this Holdfast was closed
 * @throws TypeError, RangeError  invalid event or option; nothing was sent
 */
export async function appendHistory(holdfast: Holdfast, event: HistoryEvent, options: KeepOptions = {}): Promise<void> {
  const checked = checkEvent(event);
  const keep = checkKeep(options);
  const place = placeOf(holdfast);
  await append(place, checked.name, [{ text: textOf(place, checked), agoMs: checked.agoMs ?? 0 }], keep);
}

/** An event as it is stored. */
export interface Written {
  /** The event as JSON. */
  readonly text: string;
  /** How long ago it happened, in ms. */
  readonly agoMs: number;
}

/**
 * Adds events to the history of a name, on all servers.
 *
 * @param events  oldest first
 * @throws StoreError  no server accepted the events
 */
export async function append(place: Place, name: string, events: readonly Written[], keep: Keep): Promise<void> {
  const history = historyKey(place, name);
  const to = async (store: Store): Promise<void> => {
    for (let at = 0; at < events.length; at += MOST_IN_ONE) {
      // Round ages down so that no event appears to be older than it is.
      const lines = events.slice(at, at + MOST_IN_ONE).map(({ text, agoMs }) => `${Math.floor(agoMs)} ${text}\n`);
      const args = { entries: lines.join(""), most: keep.maxEntries, keepMs: keep.keepMs };
      await call({ store, name }, adminAppendHistory, { history }, args, place.timeoutMs);
    }
  };
  await Promise.any(place.stores.map(to)).catch((error: unknown) => {
    throw error instanceof AggregateError ? error.errors[0] : error;
  });
}

/** Returns the key of the history of a name. It is in the same cluster slot as the locks of that name. */
export function historyKey({ prefix }: Pick<Place, "prefix">, name: string): string {
  return lockKeys(prefix, "history", name).lock;
}

/** Returns the stored form of an event. An event without a token gets an id, so that readers recognize duplicates. */
export function textOf({ session, clientName }: Place, given: HistoryEvent & { readonly id?: string }): string {
  const { agoMs: _, name: __, ...event } = given;
  const id = event.token === undefined ? (event.id ?? session.runtime.newClientId()) : undefined;
  const isOther = event.host !== undefined || event.what === "forced";
  const here = !isOther ? { host: hostname(), pid, clientName: clientName || undefined } : {};
  return JSON.stringify({ ...event, ...here, id });
}

/** Checks the options and adds the defaults. @throws TypeError, RangeError  invalid option */
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
    throw new TypeError(`event.what must be one of ${WORDS.join(", ")}; got ${show(event?.what)}`);
  }
  checkName(event.name);
  for (const field of ["kind", "key", "owner", "host", "clientName", "reason", "tick", "errorName", "by"] as const) {
    const text: unknown = event[field];
    if (text === undefined && field !== "kind") continue;
    if (typeof text !== "string") throw new TypeError(`${field} must be a string; got ${show(text)}`);
    // The owner of a pause contains the operator's text, percent-encoded, so it can be longer than the other fields.
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

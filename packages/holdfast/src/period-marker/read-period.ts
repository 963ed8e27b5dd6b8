/** Reads period markers: the server's time and the last run. */

import { call } from "../core/call.js";
import type { Store } from "../core/store.js";
import { periodMarkerRead } from "../generated/period-marker.js";
import type { Holdfast } from "../holdfast.js";
import { checkKnown } from "../holdfast-options.js";
import { divisionOf, opensAtMs, type Period } from "./period.js";
import { onMajority, type Place, placeOf } from "./place.js";

/** A run that has started, as recorded on the server. */
export interface LastRun {
  /** Owner id of the run's lease. */
  readonly owner: string;
  /** Fencing token of the run's lease. */
  readonly token: number;
  /** Host name of the process that ran it. */
  readonly host: string | undefined;
  /** Process id on that host. */
  readonly pid: number | undefined;
  /** The `clientName` option of the process. */
  readonly clientName: string | undefined;
  /** The `label` of the lease. */
  readonly label: string | undefined;
  /** Server time that determines the period of the run, in ms since 1970. */
  readonly readAtMs: number;
  /** Server time at which the run started, in ms since 1970. */
  readonly startedAtMs: number;
  /** Server time at which the run ended, in ms since 1970; undefined if it has not reported its end. */
  readonly endedAtMs: number | undefined;
  /** The exit code of the run; 0 means success. Undefined if `endedAtMs` is. */
  readonly exitCode: number | undefined;
}

/** The last run under a name, and when the next one may start. */
export interface PeriodInspection {
  /** The server's time, in ms since 1970. Pass it to `startOfPeriod` as `readAtMs`. */
  readonly nowMs: number;
  /** The last run; undefined if there was none for at least a week plus two periods. */
  readonly lastRun: LastRun | undefined;
  /**
   * Server time at which the next run may start, in ms since 1970; undefined if there is no last run. Without
   * `untilSuccess`, `startOfPeriod` refuses a run whose `readAtMs` is earlier, so you need not acquire the lock for it.
   * With `untilSuccess`, it refuses such a run only if a run in this period has succeeded.
   */
  readonly opensAtMs: number | undefined;
}

/**
 * Returns the time of the server that stores the lock, in ms since 1970. With several independent servers, returns the
 * median of their times. Read-only.
 *
 * @param options  `key`: the `key` option of the mutex, if it has one
 * @throws StoreError   no reply
 * @throws QuorumError  no reply from a majority of the servers
 * @throws ClosedError  this Holdfast instance was closed
 */
export async function serverTimeMs(
  holdfast: Holdfast,
  name: string,
  options: { readonly key?: string | undefined } = {},
): Promise<number> {
  const place = placeOf(holdfast, name, checkKnown(options, ["key"]).key);
  return middleOf(await onMajority(place, (store) => read(place, store)));
}

function middleOf(replies: readonly { readonly nowMs: number }[]): number {
  const times = replies.map(({ nowMs }) => nowMs).toSorted((a, b) => a - b);
  return times[Math.floor((times.length - 1) / 2)] ?? 0;
}

/**
 * Returns the last run; undefined if there was none for at least a week plus two periods. Read-only.
 *
 * @param options  `key`: the `key` option of the mutex, if it has one
 * @throws StoreError, QuorumError, ClosedError
 */
export async function lastRunOf(
  holdfast: Holdfast,
  name: string,
  options: { readonly key?: string | undefined } = {},
): Promise<LastRun | undefined> {
  const place = placeOf(holdfast, name, checkKnown(options, ["key"]).key);
  const runs = (await onMajority(place, (store) => read(place, store))).flatMap((reply) =>
    reply.outcome === "ran" ? [lastRunIn(reply.texts)] : [],
  );
  return newest(runs);
}

/**
 * Returns the server's time, the last run and when the next run may start. One request; read-only.
 *
 * @param options  `every`: the period, as for `startOfPeriod`; `key`: the `key` option of the mutex, if it has one
 * @throws StoreError, QuorumError, ClosedError
 * @throws TypeError, RangeError  an invalid option; nothing was sent
 */
export async function inspectPeriod(
  holdfast: Holdfast,
  name: string,
  options: { readonly every: Period; readonly key?: string | undefined },
): Promise<PeriodInspection> {
  const { every, key } = checkKnown(options, ["every", "key"]);
  const division = divisionOf(every);
  const place = placeOf(holdfast, name, key);
  const replies = await onMajority(place, (store) => read(place, store));
  const lastRun = newest(replies.flatMap((reply) => (reply.outcome === "ran" ? [lastRunIn(reply.texts)] : [])));
  return {
    nowMs: middleOf(replies),
    lastRun,
    opensAtMs: lastRun === undefined ? undefined : opensAtMs(division, lastRun.readAtMs),
  };
}

/** The fields of a marker, in the order in which scripts return them. */
export type Texts = readonly string[];

/** Parses the fields of a marker. */
export function lastRunIn([
  owner = "",
  token,
  host,
  process,
  name,
  label,
  readMs,
  started,
  ended,
  code,
]: Texts): LastRun {
  const number = (text: string | undefined): number | undefined => (text ? Number(text) : undefined);
  return {
    owner,
    token: Number(token),
    host: host || undefined,
    pid: number(process),
    clientName: name || undefined,
    label: label || undefined,
    readAtMs: Number(readMs),
    startedAtMs: Number(started),
    endedAtMs: number(ended),
    exitCode: number(code),
  };
}

function newest(runs: readonly LastRun[]): LastRun | undefined {
  return runs.toSorted(
    (one, other) => other.readAtMs - one.readAtMs || (other.endedAtMs ?? 0) - (one.endedAtMs ?? 0),
  )[0];
}

function read({ internals: { session }, name, marker }: Place, store: Store) {
  return call({ store, name }, periodMarkerRead, { marker }, {}, session.commandTimeoutMs);
}

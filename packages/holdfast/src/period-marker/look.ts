/** Looking at the notes of periods: what time it is, and who ran last. */

import { periodMarkerRead } from "../generated/period-marker-scripts.js";
import type { Holdfast, Store } from "../index.js";
import { call, checkKnown } from "../internal.js";
import { divisionOf, opensAtMs, type Period } from "./period.js";
import { onMajority, type Place, placeOf } from "./place.js";

/** A run that has started, as the server has it on record. */
export interface LastRun {
  readonly owner: string;
  readonly token: number;
  readonly host: string | undefined;
  readonly pid: number | undefined;
  /** The `clientName` option of the process. */
  readonly clientName: string | undefined;
  /** The `label` of the lease. */
  readonly label: string | undefined;
  /** The time by which its period is counted, by the server's clock, in ms since 1970. */
  readonly readAtMs: number;
  /** When it started, by the same. */
  readonly startedAtMs: number;
  /** When it ended, by the same; undefined if it has not, or nobody told. */
  readonly endedAtMs: number | undefined;
  /** How it ended; 0 is success. */
  readonly exitCode: number | undefined;
}

/** The period of a name as it is now. */
export interface PeriodLook {
  /** The server's time, in ms since 1970: what `startOfPeriod` wants to be told as `readAtMs`. */
  readonly nowMs: number;
  /** Who ran last; undefined if nobody has for a week and twice a period. */
  readonly lastRun: LastRun | undefined;
  /**
   * When the next one may start, by the server's clock, in ms since 1970; undefined if anybody may. Whoever has read the clock
   * before that is refused by `startOfPeriod`, and need not take the lock to hear it.
   */
  readonly opensAtMs: number | undefined;
}

/**
 * The time of the server that has a name, in ms since 1970; of several independent servers the middle one of their times.
 * Changes nothing.
 *
 * @throws StoreError   it did not answer. @throws QuorumError  no majority did. @throws ClosedError
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
 * Who ran last; undefined if nobody has for a week and twice a period. Changes nothing.
 *
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
 * What time it is, who ran last, and when the next one may start. One request; changes nothing.
 *
 * @throws StoreError, QuorumError, ClosedError
 * @throws TypeError, RangeError  a wrong option; nothing was sent
 */
export async function lookAtPeriod(
  holdfast: Holdfast,
  name: string,
  options: { readonly every: Period; readonly key?: string | undefined },
): Promise<PeriodLook> {
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

/** The fields of a note, in the order in which scripts give them. */
export type Texts = readonly string[];

/** A run, of the fields of its note. */
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

/**
 * Allows at most one start per period among all holders of a lock. A marker next to the lock records the last start.
 *
 * After a grant, one script checks that the lock is still held and that the period is free, and writes the marker. The
 * lock limits how many holders can ask at a time; the marker ensures that only one of them starts.
 */
import { hostname } from "node:os";
import { pid } from "node:process";
import { call } from "../core/call.js";
import { LeaseLostError, UnsupportedError } from "../core/errors.js";
import { show } from "../core/keys.js";
import { askAsHolder, Lease } from "../core/lease.js";
import { checkOneOf, checkWhole } from "../core/options.js";
import { parseOwner } from "../core/protocol.js";
import type { Store } from "../core/store.js";
import { periodMarkerEnd, periodMarkerStart } from "../generated/period-marker.js";
import type { Holdfast } from "../holdfast.js";
import { checkKnown } from "../holdfast-options.js";
import { divisionOf, opensAtMs, type Period } from "./period.js";
import { keysOf, majorityOf, onMajority, type Place, placeOf } from "./place.js";
import { type LastRun, lastRunIn } from "./read-period.js";

/** Options of `startOfPeriod`. */
export interface PeriodOptions {
  /**
   * The period: a length in ms, a whole number from 1,000 to 31,536,000,000; or `"hour"`, `"day"` or `"week"` for a
   * calendar period in UTC. If it is a length, nine tenths of it must have passed since the last run, so that a daily job
   * is not skipped if it starts a second earlier than the day before. Use a calendar period for a job that is tried
   * several times per period but must run only once. A calendar period begins 30 s before its calendar boundary.
   */
  readonly every: Period;
  /** The result of a `serverTimeMs` call that was made before waiting for the lock, in ms since 1970. */
  readonly readAtMs: number;
  /**
   * Whether another run may start in the period if the last one failed or has not reported its end.
   * @default false
   */
  readonly untilSuccess?: boolean | undefined;
  /** The `key` option of the mutex, if it has one. */
  readonly key?: string | undefined;
}

/** The result of `startOfPeriod`. */
export type PeriodStart =
  | {
      readonly outcome: "started";
      /**
       * Records the exit code of the run. Later callers that are refused get it in `lastRun`. The lock does not need
       * to be held.
       *
       * @param exitCode  a whole number from 0 to 255; 0 means success
       * @returns false if another run has started in the meantime, or if the server has forgotten this run
       * @throws StoreError, QuorumError  outcome unknown; repeating the call is safe
       * @throws TypeError, RangeError    an invalid `exitCode`; nothing was sent
       */
      end(exitCode: number): Promise<boolean>;
    }
  | {
      readonly outcome: "already";
      /** The run that has already started in this period. */
      readonly lastRun: LastRun;
      /** The earliest `readAtMs` with which the next run may start: server time, in ms since 1970. */
      readonly opensAtMs: number;
    };

const PERMITS: ReadonlySet<string> = new Set(["semaphore", "read-write-lock"]);
const KINDS: ReadonlySet<string> = new Set(["mutex", "reentrant-mutex", "election", "redlock", ...PERMITS]);

/**
 * The server keeps a marker for this many ms plus two periods, because a caller that has waited for a long time has an
 * old `readAtMs`, and because `lastRunOf` reads the marker.
 */
const KEEP_MS = 7 * 24 * 3_600_000;

/**
 * Starts a run if the period is still free, and records the start. Without `untilSuccess`, no other run can start in
 * this period.
 *
 * Calling this again with the same lease returns the same result. If the reply is lost, the period may count as used.
 *
 * @param lease  a newly granted lease of a mutex, reentrant mutex, semaphore, read-write lock, election or redlock of
 *               this Holdfast instance
 * @returns "started" if this caller may run; otherwise "already", with the last run
 * @throws LeaseLostError    the lease has ended; nothing was recorded, except possibly on a minority of several
 *                           servers
 * @throws StoreError        outcome unknown
 * @throws QuorumError       with several servers: outcome unknown
 * @throws UnsupportedError  a lease of another kind
 * @throws ClosedError       this Holdfast instance was closed
 * @throws TypeError, RangeError  an invalid option; nothing was sent
 */
export async function startOfPeriod(holdfast: Holdfast, lease: Lease, options: PeriodOptions): Promise<PeriodStart> {
  if (!(lease instanceof Lease)) throw new TypeError(`lease must be the result of acquire; got ${show(lease)}`);
  const {
    every,
    readAtMs,
    untilSuccess = false,
    key,
  } = checkKnown(options, ["every", "readAtMs", "untilSuccess", "key"]);
  const division = divisionOf(every);
  checkWhole("readAtMs", readAtMs, 0, Number.MAX_SAFE_INTEGER);
  checkOneOf("untilSuccess", untilSuccess, true, false);
  const { kind, owner, token } = Lease.holdingOf(lease);
  if (!KINDS.has(kind)) {
    throw new UnsupportedError(
      lease.name,
      `A lease of kind ${kind} cannot start a period: Holdfast cannot check the lock and record the start in one step.`,
    );
  }
  const place = placeOf(holdfast, lease.name, key);
  lease.assertHeld();
  const { lock } = keysOf(place.internals.prefix, kind === "reentrant-mutex" ? "mutex" : kind, lease.name, key);
  const ask = (store: Store, write: boolean): ReturnType<typeof start> =>
    start(
      place,
      store,
      { lock, holders: PERMITS.has(kind) ? `${lock}:holders` : lock },
      {
        owner,
        token,
        permits: PERMITS.has(kind) ? 1 : 0,
        readMs: readAtMs as number, // just checked
        ...division,
        needsOk: untilSuccess ? 1 : 0,
        write: write ? 1 : 0,
        keepMs: KEEP_MS + 2 * division.periodMs,
        host: hostname(),
        pid,
        name: place.internals.clientName,
        label: parseOwner(owner)?.label ?? "",
      },
    );
  // With several servers, read all markers before writing any, because some servers may have missed the last start.
  const replies = place.stores.length > 1 ? await onMajority(place, (store) => ask(store, false)) : [];
  const found = alreadyIn(replies);
  const started = (answers: Answers): number => answers.filter(({ outcome }) => outcome === "started").length;
  const isLost = (answers: Answers): boolean =>
    alreadyIn(answers) === undefined && started(answers) < majorityOf(place);
  const note = (): Promise<Answers> => onMajority(place, (store) => ask(store, true));
  const answers = found === undefined ? await askAsHolder(lease, note, isLost) : [];
  const already = found ?? alreadyIn(answers);
  if (already !== undefined) {
    return { outcome: "already", lastRun: already.lastRun, opensAtMs: opensAtMs(division, already.countsMs) };
  }
  if (started(answers) < majorityOf(place)) {
    throw new LeaseLostError(lease.name, { reason: "server-lost", token, owner });
  }
  return {
    outcome: "started",
    async end(exitCode) {
      checkWhole("exitCode", exitCode, 0, 255);
      const ends = await onMajority(place, (store) => end(place, store, { owner, token, code: exitCode }));
      return ends.filter(({ outcome }) => outcome === "noted").length >= majorityOf(place);
    },
  };
}

type Answers = readonly Awaited<ReturnType<typeof start>>[];

function alreadyIn(answers: Answers): { readonly lastRun: LastRun; readonly countsMs: number } | undefined {
  const found = answers.flatMap((answer) => {
    return answer.outcome === "already"
      ? [{ lastRun: lastRunIn(answer.texts), countsMs: Number(answer.texts[10]) }]
      : [];
  });
  return found.toSorted((one, other) => other.countsMs - one.countsMs)[0];
}

function start(
  { internals: { session }, name, marker }: Place,
  store: Store,
  keys: { readonly lock: string; readonly holders: string },
  args: Readonly<Record<(typeof periodMarkerStart)["args"][number], string | number>>,
) {
  return call({ store, name }, periodMarkerStart, { ...keys, marker }, args, session.commandTimeoutMs);
}

function end(
  { internals: { session }, name, marker }: Place,
  store: Store,
  args: Readonly<Record<(typeof periodMarkerEnd)["args"][number], string | number>>,
) {
  return call({ store, name }, periodMarkerEnd, { marker }, args, session.commandTimeoutMs);
}

/**
 * At most one start in each period, of all who take a lock in turn: a note beside the lock of who started last, and when.
 *
 * Under a fresh grant one script checks that the lock is still held and that the period is free, and writes the note. So the
 * lock sees to it that one at a time asks, and the note that only one of them starts.
 */
import { hostname } from "node:os";
import { pid } from "node:process";
import { periodMarkerEnd, periodMarkerStart } from "../generated/period-marker-scripts.js";
import { type Holdfast, LeaseLostError, type Store, UnsupportedError } from "../index.js";
import { askAsHolder, call, checkKnown, checkWhole, Lease, parseOwner, show } from "../internal.js";
import { type LastRun, lastRunIn } from "./look.js";
import { divisionOf, opensAtMs, type Period } from "./period.js";
import { keysOf, majorityOf, onMajority, type Place, placeOf } from "./place.js";

/** Which period, and what counts in it. */
export interface PeriodOptions {
  /**
   * How often. A number of ms, counted from the last run: it is refused when that was less than nine tenths of it ago, so that
   * who starts once a day, a second sooner than yesterday, skips no day. Or `"hour"`, `"day"` or `"week"` of the calendar in UTC,
   * for what is tried more often and shall run once in each; a time up to 30 s before one begins counts as in it.
   */
  readonly every: Period;
  /** What `serverTimeMs` said before this one waited for the lock, in ms since 1970. */
  readonly readAtMs: number;
  /**
   * Whether a run that failed, or has not been heard of since, leaves the period to the next one.
   * @default false
   */
  readonly untilSuccess?: boolean | undefined;
  /** The `key` option of the mutex, if it has one. */
  readonly key?: string | undefined;
}

/** What came of it. */
export type PeriodStart =
  | {
      readonly outcome: "started";
      /**
       * Notes how the run has ended, for whoever is refused next, and with 0 that it succeeded. Whether the lock is still held
       * is of no account.
       *
       * @param exitCode  whole, 0 to 255
       * @returns false if another run has started since
       * @throws StoreError, QuorumError  it may not be noted; trying again is safe
       */
      end(exitCode: number): Promise<boolean>;
    }
  | {
      readonly outcome: "already";
      readonly lastRun: LastRun;
      /** When the next one may start, by the server's clock, in ms since 1970, for who reads the clock then. */
      readonly opensAtMs: number;
    };

const PERMITS: ReadonlySet<string> = new Set(["semaphore", "read-write-lock"]);
const KINDS: ReadonlySet<string> = new Set(["mutex", "reentrant-mutex", "election", "redlock", ...PERMITS]);

/** A note outlives its period, since who waits for long has read the clock long ago; and it says who ran last. */
const KEEP_MS = 7 * 24 * 3_600_000;

/**
 * Whether whoever holds that lease may start in this period; if so it is noted, and nobody else may.
 *
 * Asked again with the same lease it gives the same answer. If the answer is lost, the period may count as used.
 *
 * @param lease  of a mutex, a semaphore, a read-write lock, an election or a redlock of that Holdfast, just granted
 * @throws LeaseLostError    it is over; nothing was noted
 * @throws StoreError        outcome unknown. @throws QuorumError  the same, of several servers
 * @throws UnsupportedError  a lease of another kind
 * @throws ClosedError       this Holdfast was closed
 * @throws TypeError, RangeError  a wrong option; nothing was sent
 */
export async function startOfPeriod(holdfast: Holdfast, lease: Lease, options: PeriodOptions): Promise<PeriodStart> {
  if (!(lease instanceof Lease)) throw new TypeError(`lease must be what acquire returned; got ${show(lease)}`);
  const {
    every,
    readAtMs,
    untilSuccess = false,
    key,
  } = checkKnown(options, ["every", "readAtMs", "untilSuccess", "key"]);
  const division = divisionOf(every);
  checkWhole("readAtMs", readAtMs, 0, Number.MAX_SAFE_INTEGER);
  if (typeof untilSuccess !== "boolean")
    throw new TypeError(`untilSuccess must be true or false; got ${show(untilSuccess)}`);
  const { kind, owner, token } = Lease.holdingOf(lease);
  if (!KINDS.has(kind)) {
    throw new UnsupportedError(
      lease.name,
      `A lease of the kind ${kind} cannot start a period: it cannot be recorded together with the lock in one step.`,
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
  // Of several servers each is asked before any is told: one that has a note speaks for those that missed it.
  const looked = place.stores.length > 1 ? await onMajority(place, (store) => ask(store, false)) : [];
  const found = alreadyIn(looked);
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

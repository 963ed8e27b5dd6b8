/** Locks, listed and one by one: `api/locks`, `api/lock`. Other pages show their rows too. */
import type { KindName, Stamped } from "./document.js";
import type { HistoryRow } from "./history.js";
import type { ActionName } from "./session.js";

/**
 * `awaited`: nobody holds it and somebody waits, as for a moment, or in a failover grace. `counting`: a latch above zero.
 * `gathering`: a barrier at which somebody has arrived. `broken`: a barrier whose last generation broke;
 * or a lock that cannot be read, since a key of it is of another type than ours.
 */
export type LockState = "held" | "awaited" | "paused" | "counting" | "gathering" | "broken" | "free";

/** One hold. */
export interface HolderView {
  /** Id of the claim, as `holdfast release --owner` takes it; without its label if labels are hidden. */
  readonly owner: string;
  readonly clientId: string | null;
  readonly host: string | null;
  readonly pid: number | null;
  /** The `clientName` option. */
  readonly app: string | null;
  readonly token: number | null;
  readonly sinceAtMs: number | null;
  /** Null: no end (a foreign key without an expiry). */
  readonly expiresAtMs: number | null;
  readonly label: string | null;
  /** When its client was last heard of, if that is more than a minute ago: it has crashed or is cut off. Null: it is alive, or not known. */
  readonly goneSinceAtMs: number | null;
  /** Together with others of the same mode (a reader, a semaphore's holder), or alone. */
  readonly mode: "shared" | "exclusive";
  /** How many permits of a semaphore, and which numbers; 1 and none for other kinds. */
  readonly permits: number;
  readonly slots: readonly number[];
}

/** One claim in the queue. */
export interface WaiterView {
  /** Its place, from 1. */
  readonly place: number;
  readonly owner: string;
  readonly clientId: string | null;
  readonly host: string | null;
  readonly pid: number | null;
  readonly app: string | null;
  readonly label: string | null;
  readonly mode: "shared" | "exclusive";
  readonly permits: number;
  /** It waits at least since then: when it was first seen. Null before it was seen. */
  readonly sinceAtMs: number | null;
  /** As of a holder. */
  readonly goneSinceAtMs: number | null;
}

/** Permits of a semaphore. */
export interface PermitsView {
  readonly used: number;
  /** Null: none is on record. */
  readonly limit: number | null;
  /** True after a resize to fewer than are out; it lasts until enough came back. */
  readonly isOver: boolean;
}

/** Who keeps a name shut. */
export interface PauseView {
  readonly by: string | null;
  readonly reason: string | null;
  readonly sinceAtMs: number | null;
  /** Null: until somebody resumes it. */
  readonly untilAtMs: number | null;
  /** Compared by resume and extend-pause, so that a stale page hits no other pause. */
  readonly id: string;
}

/** One line of the list. */
export interface LockRow {
  /** Stable key of the row. */
  readonly id: string;
  readonly kind: KindName;
  readonly name: string;
  /** The `key` option of a mutex that has one; it then stands in `name` too. To be given back wherever `name` is. */
  readonly key: string | null;
  readonly state: LockState;
  /** The first 3; `holderCount` says how many. */
  readonly holders: readonly HolderView[];
  readonly holderCount: number;
  /** How many of all holders are gone, see `HolderView.goneSinceAtMs`. */
  readonly goneCount: number;
  readonly waiterCount: number;
  /** Of the oldest hold, or of the pause. */
  readonly sinceAtMs: number | null;
  /** Of the first holder, if there is one; null as well when it has no end. */
  readonly expiresAtMs: number | null;
  readonly token: number | null;
  readonly permits: PermitsView | null;
  /** Of a latch: how far it has counted. */
  readonly count: { readonly left: number; readonly initial: number } | null;
  readonly label: string | null;
  readonly pause: PauseView | null;
  /**
   * Null for nearly all. `redlock`: a Redlock of several servers, of which this console sees one. `single-server`: a lock on one
   * server of a group, without the others. Either is shown as far as it is seen, and can be changed only from a console with the
   * right servers.
   */
  readonly needsTopology: "redlock" | "single-server" | null;
  /** Contention, see `Samples`; empty when nobody waited in the last 5 minutes. */
  readonly waiterSamples: Samples;
}

/**
 * At most 30 numbers, one each 10 s, oldest first: the most that were seen in those 10 s. The last is the present span.
 * Kept in memory since the first viewer; nothing is invented for the time before.
 */
export type Samples = readonly number[];

/** How far 30 samples reach back, in ms. */
export const SAMPLE_SPAN_MS = 10_000;

/** GET api/locks */
export interface LocksAnswer extends Stamped {
  readonly rows: readonly LockRow[];
  /** Give it back as `cursor` for the next page; null: that was the last. */
  readonly nextCursor: string | null;
}

/** GET api/lock/:kind/:name. A name that nobody uses is `free`, never 404. */
export interface LockAnswer extends Stamped {
  readonly row: LockRow;
  /** All. */
  readonly holders: readonly HolderView[];
  /** The first 100, next one first; `row.waiterCount` says how many. */
  readonly waiters: readonly WaiterView[];
  readonly explain: ExplainView;
  /** Newest first, at most 200; also what the timeline is drawn from. Empty without history. */
  readonly history: readonly HistoryRow[];
  /** Other kinds that are in use under the same name: they do not exclude each other. */
  readonly otherKinds: readonly KindName[];
  /** What this viewer may do to it now: of `session.allow`, what fits the kind and what `authorize` lets through. */
  readonly actions: readonly ActionName[];
  readonly leader: LeaderView | null;
}

/** Why the next waiter is not running, in one sentence. */
export interface ExplainView {
  readonly code:
    | "free"
    | "no-waiters"
    | "held"
    | "paused"
    | "grace"
    | "dead-holder"
    | "no-permits"
    | "foreign"
    | "unreadable"
    | "hand-over";
  readonly text: string;
  /** When it ends by itself, if nobody does anything; null if it does not. */
  readonly untilAtMs: number | null;
}

/** Who leads. */
export interface LeaderView extends HolderView {
  /** Null if values are hidden. */
  readonly value: string | null;
  readonly term: number;
}

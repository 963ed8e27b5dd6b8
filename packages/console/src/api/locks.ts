/** The list of locks and single locks: `api/locks`, `api/lock`. Other pages also show their rows. */
import type { KindName, Stamped } from "./document.js";
import type { HistoryRow } from "./history.js";
import type { ActionName } from "./session.js";

/**
 * `awaited`: no holder, but waiters, as during a hand-over or a quiet time. `counting`: a latch above zero.
 * `gathering`: a barrier at which parties wait. `broken`: a barrier whose last generation broke, or a lock that
 * cannot be read because one of its keys has a foreign type.
 */
export type LockState = "held" | "awaited" | "paused" | "counting" | "gathering" | "broken" | "free";

/** One holder of a lock. */
export interface HolderView {
  /**
   * The owner id of the claim, in the form that `holdfast release --owner` takes; without its label if labels are
   * hidden.
   */
  readonly owner: string;
  readonly clientId: string | null;
  readonly host: string | null;
  readonly pid: number | null;
  /** The `clientName` option of the client. */
  readonly app: string | null;
  readonly token: number | null;
  readonly sinceAtMs: number | null;
  /** Null: the hold does not end by itself (a foreign key without an expiry). */
  readonly expiresAtMs: number | null;
  readonly label: string | null;
  /**
   * When the client was last seen, if that is more than a minute ago: it has crashed or is cut off. Null: alive or
   * unknown.
   */
  readonly goneSinceAtMs: number | null;
  /** Whether others can hold the lock at the same time (readers, semaphore holders). */
  readonly mode: "shared" | "exclusive";
  /** The number of semaphore permits held, and their ids; 1 and an empty list for other kinds. */
  readonly permits: number;
  readonly slots: readonly number[];
}

/** One waiter in the queue. */
export interface WaiterView {
  /** Position in the queue, starting at 1. */
  readonly place: number;
  readonly owner: string;
  readonly clientId: string | null;
  readonly host: string | null;
  readonly pid: number | null;
  readonly app: string | null;
  readonly label: string | null;
  readonly mode: "shared" | "exclusive";
  readonly permits: number;
  /**
   * When the waiter joined the queue. If the queue does not record that, when this process first saw the waiter, which
   * may have waited longer. Null if this process has not seen the waiter yet.
   */
  readonly sinceAtMs: number | null;
  /** As `HolderView.goneSinceAtMs`. */
  readonly goneSinceAtMs: number | null;
}

/** The permits of a semaphore. */
export interface PermitsView {
  readonly used: number;
  /** Null: no limit is recorded. */
  readonly limit: number | null;
  /** True after a resize to fewer permits than are held, until enough are released. */
  readonly isOver: boolean;
}

/** A pause of a lock. */
export interface PauseView {
  readonly by: string | null;
  readonly reason: string | null;
  readonly sinceAtMs: number | null;
  /** Null: until it is resumed. */
  readonly untilAtMs: number | null;
  /** Sent back with resume and extend-pause, so that an outdated page does not change another pause. */
  readonly id: string;
}

/** One row of the list. */
export interface LockRow {
  /** Stable id of the row. */
  readonly id: string;
  readonly kind: KindName;
  readonly name: string;
  /** The `key` option of a mutex that has one; `name` then contains it too. Send it together with `name`. */
  readonly key: string | null;
  readonly state: LockState;
  /** The first 3 holders; `holderCount` is the total. */
  readonly holders: readonly HolderView[];
  readonly holderCount: number;
  /** The number of holders that are gone; see `HolderView.goneSinceAtMs`. */
  readonly goneCount: number;
  readonly waiterCount: number;
  /** Start of the oldest hold, or of the pause. */
  readonly sinceAtMs: number | null;
  /** When the first holder's lease ends; null if there is no holder or no end. */
  readonly expiresAtMs: number | null;
  readonly token: number | null;
  readonly permits: PermitsView | null;
  /** The count of a latch. */
  readonly count: { readonly left: number; readonly initial: number } | null;
  readonly label: string | null;
  readonly pause: PauseView | null;
  /**
   * The topology needed to change this lock; null for nearly all locks. `redlock`: a Redlock across several servers,
   * when this console sees only one of them. `single-server`: a lock on one server of a group. Both are shown as far as
   * this console can see them, and can be changed only from a console with the right servers.
   */
  readonly needsTopology: "redlock" | "single-server" | null;
  /** For `single-server`: the servers that have a lock of this name, each as an address or `server 1`. Otherwise empty. */
  readonly onServers: readonly string[];
  /** Contention, see `Samples`; empty if there were no waiters in the last 5 minutes. */
  readonly waiterSamples: Samples;
}

/**
 * At most 30 numbers, one per 10 s, oldest first: the maximum seen in each interval. The last one is the current
 * interval. Recorded in memory since the first viewer; there are no values for earlier times.
 */
export type Samples = readonly number[];

/** Length of one sample interval, in ms. */
export const SAMPLE_SPAN_MS = 10_000;

/**
 * Response of GET api/locks. With `q`, one request reads until `limit` locks match, but at most about 10,000 locks. The
 * response can then have few or no rows even though later pages have some, or up to 99 rows more than `limit`.
 */
export interface LocksAnswer extends Stamped {
  readonly rows: readonly LockRow[];
  /** Send it as `cursor` to get the next page; null: this is the last page. */
  readonly nextCursor: string | null;
  /** The number of locks read for this page, matching or not; null for visitors who may not see all locks. */
  readonly lockCount: number | null;
  /** The number of servers that have not replied since the first page. Their locks are missing. */
  readonly unreachable: number;
}

/** How complete a list is. */
export interface Extent {
  /** True if there are more locks than the console reads (10,000). To read all, use api/locks with a cursor. */
  readonly isCut: boolean;
  /** The number of servers that did not reply. Their locks are missing. */
  readonly unreachable: number;
}

/**
 * Maximum number of locks that a page follows, and of semaphores or elections on their pages. For more, read api/locks
 * page by page with a cursor.
 */
export const MOST_FOLLOWED = 10_000;

/** Response of GET api/lock/:kind/:name. An unused name is `free`, never 404. */
export interface LockAnswer extends Stamped {
  readonly row: LockRow;
  /** All holders. */
  readonly holders: readonly HolderView[];
  /** The first 100 waiters, in queue order; `row.waiterCount` is the total. */
  readonly waiters: readonly WaiterView[];
  readonly explain: ExplainView;
  /** At most 200 entries, newest first; the timeline uses them too. Empty if no history is recorded. */
  readonly history: readonly HistoryRow[];
  /** Other kinds of lock in use under the same name. They do not exclude each other. */
  readonly otherKinds: readonly KindName[];
  /**
   * The actions available to this viewer now: those in `session.allow` that fit the kind and that `authorize`
   * permits.
   */
  readonly actions: readonly ActionName[];
  readonly leader: LeaderView | null;
}

/** Why the next waiter does not hold the lock yet, in one sentence. */
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
    | "hand-over"
    | "counting"
    | "gathering"
    | "broken";
  readonly text: string;
  /** When this state ends without intervention; null if it does not. */
  readonly untilAtMs: number | null;
}

/** The current leader. */
export interface LeaderView extends HolderView {
  /** Null if values are hidden. */
  readonly value: string | null;
  readonly term: number;
}

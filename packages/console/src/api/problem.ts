/** The format of errors. */
import type { HolderView, PermitsView } from "./locks.js";
import type { StoreView } from "./redis.js";

/** An error in the format of RFC 9457. */
export interface Problem {
  readonly type: "about:blank";
  readonly title: string;
  readonly status: number;
  /** One or two sentences for the user. */
  readonly detail: string;
  readonly code:
    | "bad-request"
    | "unauthenticated"
    | "forbidden"
    | "csrf"
    | "bad-host"
    | "not-found"
    | "method-not-allowed"
    | "stale"
    | "not-held"
    | "already-paused"
    | "not-paused"
    | "too-large"
    | "unsupported-media-type"
    | "too-many-attempts"
    | "busy"
    | "redis-down"
    | "refused"
    | "undecided"
    | "wrong-type"
    | "closed"
    | "unsupported"
    | "failed";
  /** With `stale`: the current holder; absent or null if there is none. The page shows it and asks the user again. */
  readonly holder?: HolderView | null;
  /** With `stale` of a resize: the current number of permits. */
  readonly permits?: PermitsView | null;
  /** With `redis-down`: the state of the connection. */
  readonly store?: StoreView;
  /** True after an action that may have been done, because Redis did not reply or replied with an error. */
  readonly mayHaveRun?: boolean;
}

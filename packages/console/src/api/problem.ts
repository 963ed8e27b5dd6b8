/** Every error. */
import type { HolderView, PermitsView } from "./locks.js";
import type { StoreView } from "./redis.js";

/** An error, as RFC 9457 has it. */
export interface Problem {
  readonly type: "about:blank";
  readonly title: string;
  readonly status: number;
  /** One or two sentences for the person who reads it. */
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
    | "wrong-type"
    | "closed"
    | "unsupported"
    | "failed";
  /** With `stale`: who holds it now; absent or null if nobody does. The page asks again, with these facts. */
  readonly holder?: HolderView | null;
  /** With `stale` of a resize: the present number of permits. */
  readonly permits?: PermitsView | null;
  /** With `redis-down`. */
  readonly store?: StoreView;
}

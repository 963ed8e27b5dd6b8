/**
 * The page about calls made with `once`.
 *
 * Results and saved progress of a call are never sent: no page needs them, and they may contain anything.
 */
import type { Stamped } from "./document.js";
import type { HolderView } from "./locks.js";

/** The state names of `inspectOnce` in `@holdfast/recipes`. */
export type OnceStateName = "running" | "abandoned" | "done" | "failed" | "bare" | "blocked" | "released";

/** One call. */
export interface OnceRow {
  /** Stable id of the row. */
  readonly id: string;
  readonly key: string;
  readonly scope: string | null;
  readonly state: OnceStateName;
  readonly attempt: number;
  /** Token of the last attempt. */
  readonly token: number;
  /** When the first attempt began, and when the last one did. */
  readonly firstAtMs: number;
  readonly sinceAtMs: number;
  readonly endedAtMs: number | null;
  /** The client that runs the call; null if none does. */
  readonly holder: Pick<HolderView, "host" | "pid" | "app" | "clientId"> | null;
}

/** Response of GET api/once, in no particular order. Not part of the stream, because there may be very many. */
export interface OnceAnswer extends Stamped {
  readonly rows: readonly OnceRow[];
  /** Send it as `cursor` to get the next page; null: this is the last page. */
  readonly nextCursor: string | null;
  /** False with several independent servers, where `once` is not available. */
  readonly isKept: boolean;
}

/**
 * Resolves a blocked call. 409 `stale` if it is not blocked, or if a new attempt has begun since the page was read.
 */
export interface ResolveOnceBody {
  readonly reason: string;
  readonly key: string;
  readonly scope: string | null;
  /** The token from the row, so that an outdated page does not change a later attempt. */
  readonly token: number;
  /**
   * `release`: the effect has not happened, and the next caller runs the call. `done`: the effect has happened, and
   * callers get `value`.
   */
  readonly how: "release" | "done";
  /** The result as JSON, with `done`. */
  readonly value?: string;
}

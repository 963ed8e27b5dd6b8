/**
 * What the page of calls that are done once says and hears; by the rules of ../api.ts.
 *
 * What a call has returned, and what it has saved, is not told to anybody: no page needs it, and it may be anything.
 */
import type { Stamped } from "./document.js";
import type { HolderView } from "./locks.js";

/** As `inspectOnce` of `@holdfast/recipes` tells it. */
export type OnceStateName = "running" | "abandoned" | "done" | "failed" | "bare" | "blocked" | "released";

/** One call. */
export interface OnceRow {
  /** Stable key of the row. */
  readonly id: string;
  readonly key: string;
  readonly scope: string | null;
  readonly state: OnceStateName;
  readonly attempt: number;
  /** Of the last attempt. */
  readonly token: number;
  /** When the first attempt began, and the last one. */
  readonly firstAtMs: number;
  readonly sinceAtMs: number;
  readonly endedAtMs: number | null;
  /** Who runs it, while somebody does. */
  readonly holder: Pick<HolderView, "host" | "pid" | "app" | "clientId"> | null;
}

/** GET api/once, in no order. Not a part of the stream: there may be very many. */
export interface OnceAnswer extends Stamped {
  readonly rows: readonly OnceRow[];
  /** Give it back as `cursor` for the next page; null: that was the last. */
  readonly nextCursor: string | null;
  /** False where nothing can be done once, on several independent servers. */
  readonly isKept: boolean;
}

/** How a blocked call ended. 409 `stale` if it is not blocked, or was begun anew since the page was made. */
export interface ResolveOnceBody {
  readonly reason: string;
  readonly key: string;
  readonly scope: string | null;
  /** Of the row, so that a page out of date hits no later attempt. */
  readonly token: number;
  /** `release`: its effect has not happened, and the next caller runs it. `done`: it has, and `value` is what callers get. */
  readonly how: "release" | "done";
  /** With `done`: JSON. */
  readonly value?: string;
}

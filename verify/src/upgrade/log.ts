/**
 * The log of the protected resource: a list on the server, in order of arrival.
 *
 * Times are in ms of the machine's monotonic clock, which all processes share.
 */
import { hrtime } from "node:process";
import type { Build } from "./builds.js";
import type { Lane } from "./lanes.js";

/** The key of the list. */
export const LOG_KEY = "upgrade:log";

/** A worker begins to use the resource under a lease. */
export interface Entry {
  readonly type: "in";
  /** Unique in a run. */
  readonly id: string;
  readonly kind: Lane["kind"];
  readonly name: string;
  readonly worker: number;
  readonly build: Build;
  readonly token: number;
  /** The amount of the lock that it holds; readers, and holders of few permits, share the resource. */
  readonly amount: number;
  readonly mode: "read" | "write";
  /** When `acquire` was called, and when it resolved. */
  readonly callMs: number;
  readonly grantedMs: number;
  /** The end of validity that the lease reported then. */
  readonly untilMs: number;
}

/** The lease was found to be valid for longer. */
export interface Renewed {
  readonly type: "still";
  readonly id: string;
  readonly untilMs: number;
}

/** It no longer uses the resource; written before the lease is released. */
export interface Exit {
  readonly type: "out";
  readonly id: string;
  readonly atMs: number;
  /** The reason for the loss, if the lease was lost. */
  readonly lost: string | null;
}

/** A wait that ended without a grant. */
export interface Ungranted {
  readonly type: "ungranted";
  readonly name: string;
  readonly worker: number;
  readonly build: Build;
  readonly callMs: number;
  readonly endMs: number;
  /** `timeout` for a caller with a short wait limit, `stopped` at the end of the run. Everything else is a failure. */
  readonly why: "timeout" | "stopped" | "starved";
}

/** An unexpected error. */
export interface Failed {
  readonly type: "failed";
  readonly worker: number;
  readonly build: Build;
  readonly text: string;
}

export type LogEntry = Entry | Renewed | Exit | Ungranted | Failed;

/** The clock of all entries. */
export function nowMs(): number {
  return Number(hrtime.bigint() / 1_000n) / 1_000;
}

/**
 * What the guarded resource keeps: one list on the server, in the order in which entries arrived there.
 *
 * Instants are ms of the machine's monotonic clock, the same for all processes.
 */
import { hrtime } from "node:process";
import type { Build } from "./builds.js";
import type { Lane } from "./lanes.js";

/** Key of the list. */
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
  /** What it takes of the lock; the resource is shared by readers, and by holders of few permits. */
  readonly amount: number;
  readonly mode: "read" | "write";
  /** When `acquire` was called, and when it resolved. */
  readonly callMs: number;
  readonly grantedMs: number;
  /** How long the lease was good for then, as it said. */
  readonly untilMs: number;
}

/** The lease was found to be good for longer. */
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
  /** Why the lease was lost, if it was. */
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
  /** `timeout` of a caller with a short timeout, or `stopped` at the end of the run. Everything else is a failure. */
  readonly why: "timeout" | "stopped" | "starved";
}

/** An error that no caller should see. */
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

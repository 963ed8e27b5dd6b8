/**
 * Events of scheduled runs on `node:diagnostics_channel`. They cost nothing unless someone subscribes.
 *
 * | channel | published |
 * |---|---|
 * | `holdfast:run:started` | when this process begins a run |
 * | `holdfast:run:ended` | when a run ends in this process |
 * | `holdfast:run:skipped` | when this process is called and does not run; `reason` says why |
 *
 * The leases of runs are also published on the channels for locks.
 */
import { type Channel, channel } from "node:diagnostics_channel";
import type { Refusal, RefusalReason } from "./refusal.js";

/** Fields of every event. */
export interface RunEvent {
  /** Kind of the lock that the run holds, such as `mutex`. */
  readonly kind: string;
  /** Name of the job; for a coordinator, its `name`. */
  readonly lockName: string;
  /** Id of the client. It distinguishes several Holdfasts in one process, because they publish on the same channels. */
  readonly clientId: string;
  /**
   * Identifies the run: the server time of the call, or the local time if the server did not reply, in ISO 8601; for a
   * coordinator, the scheduler's key.
   */
  readonly tick: string;
}

/** Event on `holdfast:run:started`. */
export interface RunStartedEvent extends RunEvent {
  /** Owner id of the run's claim. */
  readonly owner: string;
  /** Fencing token of the run's lease. */
  readonly token: number;
}

/**
 * How a run ended.
 *
 * - `succeeded`: the work returned
 * - `failed`: the work threw an error
 * - `lost`: the lease was lost before the work returned or threw an error
 * - `unreported`: only for a coordinator, because the scheduler does not say how the run ended
 */
export type RunEnding = "succeeded" | "failed" | "lost" | "unreported";

/** Event on `holdfast:run:ended`. */
export interface RunEndedEvent extends RunStartedEvent {
  /** How the run ended. */
  readonly outcome: RunEnding;
  /** Duration of the run in milliseconds. */
  readonly ranMs: number;
  /** For `failed`, the thrown value; for `lost`, the LeaseLostError; otherwise absent. */
  readonly error?: unknown;
}

/** Event on `holdfast:run:skipped`. */
export interface RunSkippedEvent extends RunEvent {
  /** Why this process did not run. */
  readonly reason: RefusalReason;
  /** The refusal that the caller got. */
  readonly refusal: Refusal;
}

/** The channels. Check `hasSubscribers` before building an event. */
export const runChannels: { readonly started: Channel; readonly ended: Channel; readonly skipped: Channel } = {
  started: channel("holdfast:run:started"),
  ended: channel("holdfast:run:ended"),
  skipped: channel("holdfast:run:skipped"),
};

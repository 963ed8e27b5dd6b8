/**
 * What happens to runs that a scheduler starts, on `node:diagnostics_channel`. Nothing is built or sent while nobody listens.
 *
 * | channel | published |
 * |---|---|
 * | `holdfast:run:started` | this process has the run, and begins it |
 * | `holdfast:run:ended` | it has ended here |
 * | `holdfast:run:skipped` | this process was asked to run, and did not; `reason` says why |
 *
 * The leases behind them are told on the channels of locks as well.
 */
import { type Channel, channel } from "node:diagnostics_channel";
import type { Refusal, RefusalReason } from "./refusal.js";

/** What every message says. */
export interface RunEvent {
  /** Kind of the lock behind it, such as `mutex`. */
  readonly kind: string;
  /** Name of the job; for a coordinator its `name`. */
  readonly lockName: string;
  /** Id of the client: several Holdfasts of one process tell on the same channels. */
  readonly clientId: string;
  /** Which time it was for: when it was called, as ISO 8601 by the server's clock; for a coordinator the key of the scheduler. */
  readonly tick: string;
}

/** `holdfast:run:started` */
export interface RunStartedEvent extends RunEvent {
  readonly owner: string;
  readonly token: number;
}

/**
 * How a run ended: with a value, with an error of its own, or after its lease was lost. Of a coordinator `untold`: the scheduler
 * says that it has ended, and not how.
 */
export type RunEnding = "succeeded" | "failed" | "lost" | "untold";

/** `holdfast:run:ended` */
export interface RunEndedEvent extends RunStartedEvent {
  readonly outcome: RunEnding;
  /** From its start to its end, in ms. */
  readonly ranMs: number;
  /** Of `failed` what was thrown, and of `lost` the LeaseLostError; absent otherwise. */
  readonly error?: unknown;
}

/** `holdfast:run:skipped` */
export interface RunSkippedEvent extends RunEvent {
  readonly reason: RefusalReason;
  readonly refusal: Refusal;
}

/** The channels. Publish only after `hasSubscribers`, so that no message is built for nobody. */
export const runChannels: { readonly started: Channel; readonly ended: Channel; readonly skipped: Channel } = {
  started: channel("holdfast:run:started"),
  ended: channel("holdfast:run:ended"),
  skipped: channel("holdfast:run:skipped"),
};

/** What becomes of requests with an `Idempotency-Key`, on `node:diagnostics_channel`; see core/events.ts for the other channels. */
import { type Channel, channel } from "node:diagnostics_channel";
import type { Problem } from "./problems.js";

/**
 * - `carried-out`: the handler has answered, and that is kept; `released`: it has, and the next try is carried out
 * - `unstored`: it has, and whether that is kept is unknown; `ignored`: its answer was passed on and not kept
 * - `replayed`: a kept answer was given; anything else: the problem that was answered
 */
export type IdempotencyOutcome = "carried-out" | "released" | "unstored" | "ignored" | "replayed" | Problem;

/** `holdfast:idempotency`: one for each POST and PATCH that was answered. */
export interface IdempotencyEvent {
  readonly method: string;
  /** As the framework has it, such as `/payments/:id`: fit for a label. Where Express knows no pattern, the path as it was sent. */
  readonly route: string;
  /** The key of `once`, and its scope; undefined where the request had no key. Data of your users. */
  readonly key: string | undefined;
  readonly scope: string | undefined;
  readonly outcome: IdempotencyOutcome;
  /** Of the answer; undefined where the handler was called without protection. */
  readonly status: number | undefined;
  /** What was in the way, of `unavailable`, `unstored` and the like; or what `keep` threw. */
  readonly error: unknown;
}

const idempotencyChannel: Channel = channel("holdfast:idempotency");

/** Tells whoever listens. */
export function publishIdempotency(event: IdempotencyEvent): void {
  if (idempotencyChannel.hasSubscribers) idempotencyChannel.publish(event);
}

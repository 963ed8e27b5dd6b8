/**
 * The events of requests with an `Idempotency-Key`, published on a diagnostics channel. See core/events.ts for the
 * other channels.
 */
import { type Channel, channel } from "node:diagnostics_channel";
import type { Problem } from "./problems.js";

/**
 * The outcome of a request.
 *
 * - `carried-out`: the handler has responded, and the outcome is recorded
 * - `released`: the handler has responded or thrown, and the next retry is handled
 * - `unstored`: it is unknown whether the response is recorded, or the handler was called without protection
 * - `ignored`: the response passed through and was not kept
 * - `replayed`: a stored response was sent
 * - anything else: the request was refused because of this problem
 */
export type IdempotencyOutcome = "carried-out" | "released" | "unstored" | "ignored" | "replayed" | Problem;

/**
 * `holdfast:idempotency`: the outcome of a POST or PATCH. Not published for a request that goes to the handler without
 * the header, or that ends before the handler is called because the client left or an error was thrown.
 */
export interface IdempotencyEvent {
  /** The HTTP method, such as `POST`. */
  readonly method: string;
  /**
   * The route pattern of the framework, such as `/payments/:id`, which is suitable as a label. The path of the request
   * if the framework knows no pattern.
   */
  readonly route: string;
  /** The key of the `once` call. Undefined if the request had no valid key. It contains data about your users. */
  readonly key: string | undefined;
  /** The scope of the `once` call. Undefined without the option `scope`. It contains data about your users. */
  readonly scope: string | undefined;
  /** The outcome of the request. */
  readonly outcome: IdempotencyOutcome;
  /** The status of the response. Undefined if the handler threw or was called without protection. */
  readonly status: number | undefined;
  /** The error behind the outcome, for example of `unavailable` or `unstored`, or what `keep` or the handler threw. */
  readonly error: unknown;
}

const idempotencyChannel: Channel = channel("holdfast:idempotency");

/** Publishes an event if the channel has subscribers. */
export function publishIdempotency(event: IdempotencyEvent): void {
  if (idempotencyChannel.hasSubscribers) idempotencyChannel.publish(event);
}

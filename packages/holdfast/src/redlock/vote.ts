/** The replies of the servers to one attempt, and the outcome of the attempt. */
import type { ServerAnswer } from "../core/error-messages.js";
import type { EvictionError, ProtocolError, QuorumError } from "../core/errors.js";
import type { AcquireVote as Decided } from "./decision.js";
import { failed } from "./servers.js";

/** The reply of one server to an attempt. */
export type Vote =
  | { readonly outcome: "granted"; readonly token: number }
  | { readonly outcome: "held"; readonly restMs: number }
  | { readonly outcome: "failed"; readonly error: unknown };

/**
 * The outcome of an attempt.
 *
 * - `elected`: a majority holds for it and has the token as its number; the lease has not ended
 * - `outvoted`: a majority replied, but too few servers granted; or another owner holds the first server
 * - `unreached`: no majority replied, or a majority replied too late
 * - `refused`: a server must not be used, because it may evict the lock or another protocol is in use there
 */
export type Verdict =
  | { readonly outcome: "elected"; readonly token: number }
  | { readonly outcome: "outvoted" }
  | { readonly outcome: "unreached"; readonly error: QuorumError }
  | { readonly outcome: "refused"; readonly error: EvictionError | ProtocolError };

/** Converts a vote to the form that `decide` uses. */
export function toAnswer(vote: Vote | undefined): Decided {
  if (vote === undefined) return { outcome: "pending" };
  return vote.outcome === "granted" ? vote : { outcome: "refused" };
}

/** Converts the votes of an attempt to the form that error reports use. */
export function reportOf(votes: readonly (Vote | undefined)[]): ServerAnswer[] {
  return votes.map((vote, server) => {
    if (vote?.outcome === "failed") return failed(server, vote.error);
    const restMs = vote?.outcome === "held" ? vote.restMs : undefined;
    const leaseLeftMs = restMs !== undefined && restMs < 0 ? Infinity : restMs;
    return { server, answer: vote?.outcome ?? "none", leaseLeftMs, error: undefined };
  });
}

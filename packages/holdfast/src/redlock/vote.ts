/** What the servers answer to one attempt, and how it ends. */
import type { ServerAnswer } from "../core/error-messages.js";
import type { EvictionError, ProtocolError, QuorumError } from "../core/errors.js";
import type { ServerAnswer as Decided } from "./decision.js";
import { failed } from "./servers.js";

/** What one server answered. */
export type Vote =
  | { readonly outcome: "granted"; readonly token: number }
  | { readonly outcome: "held"; readonly restMs: number }
  | { readonly outcome: "failed"; readonly error: unknown };

/**
 * How an attempt ends.
 *
 * - `elected`: a majority holds for it, and stands at the token; the lease is not over
 * - `outvoted`: a majority answered, and too few of them granted; or somebody else was first at the first server
 * - `unreached`: no majority answered, or too late
 * - `refused`: a server must not be used: it may evict the lock, or another protocol is in use there
 */
export type Verdict =
  | { readonly outcome: "elected"; readonly token: number }
  | { readonly outcome: "outvoted" }
  | { readonly outcome: "unreached"; readonly error: QuorumError }
  | { readonly outcome: "refused"; readonly error: EvictionError | ProtocolError };

/** A vote as the rule of the decision knows it. */
export function toAnswer(vote: Vote | undefined): Decided {
  if (vote === undefined) return { outcome: "pending" };
  return vote.outcome === "granted" ? vote : { outcome: "refused" };
}

/** The votes of an attempt, for a report. */
export function reportOf(votes: readonly (Vote | undefined)[]): ServerAnswer[] {
  return votes.map((vote, server) => {
    if (vote?.outcome === "failed") return failed(server, vote.error);
    const restMs = vote?.outcome === "held" ? vote.restMs : undefined;
    const leaseLeftMs = restMs !== undefined && restMs < 0 ? Infinity : restMs;
    return { server, answer: vote?.outcome ?? "none", leaseLeftMs, error: undefined };
  });
}

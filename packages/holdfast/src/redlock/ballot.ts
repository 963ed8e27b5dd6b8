/**
 * One attempt to win a majority, under an owner id of its own that no other attempt ever has.
 *
 * All servers are asked at once. The token is the maximum of the numbers that a majority answered; if not a majority stands
 * at it, those below are raised, each only where it still holds for this attempt and stands where it said
 * (docs/adr/092-tokens-on-a-quorum.md says why that makes tokens rise without any assumption about time).
 *
 * Invariants: validity counts from before the first request; nobody waits for stragglers once the answers decide; the
 * majority from which the token was taken is fixed at that moment, and only its members count; what a straggler grants
 * later belongs to the lease if there is one, and is given back if there is none.
 */
import type { ServerAnswer } from "../core/error-facts.js";
import { EvictionError, type QuorumError } from "../core/errors.js";
import type { Runtime } from "../core/runtime.js";
import type { Claim } from "../core/steps.js";
import { type Moment, msUntil, now, validUntil } from "../core/validity.js";
import {
  type ConfirmAnswer,
  confirmed,
  type ServerAnswer as Decided,
  decide,
  tally,
  type Unconfirmed,
} from "./decision.js";
import { askForVote, failed, mayHaveRun, type QuorumServer, quorumError, type RedlockPlace, raise } from "./servers.js";

/** What one server answered. */
export type Vote =
  | { readonly outcome: "granted"; readonly token: number }
  | { readonly outcome: "held"; readonly restMs: number }
  | { readonly outcome: "failed"; readonly error: unknown };

/**
 * How an attempt ends.
 *
 * - `elected`: a majority holds for it, and stands at the token; the lease is not over
 * - `outvoted`: a majority answered, and too few of them granted
 * - `unreached`: no majority answered, or too late
 * - `evicting`: a server may evict the lock
 */
export type Verdict =
  | { readonly outcome: "elected"; readonly token: number }
  | { readonly outcome: "outvoted" }
  | { readonly outcome: "unreached"; readonly error: QuorumError }
  | { readonly outcome: "evicting"; readonly error: EvictionError };

/** What an attempt needs to know. */
export interface BallotFacts {
  readonly runtime: Runtime;
  readonly servers: readonly QuorumServer[];
  readonly place: RedlockPlace;
  readonly claim: Claim;
  /** Longest wait for each answer. */
  readonly timeoutMs: number;
  /** Called once. */
  readonly onVerdict: (verdict: Verdict) => void;
}

/** See the file header. */
export class Ballot {
  readonly #facts: BallotFacts;
  readonly #votes: (Vote | undefined)[];
  readonly #accounted: boolean[];
  readonly #standings: (number | undefined)[];
  /** Before the first request was sent. */
  readonly startedAt: Moment;
  /** `lost`: no majority grants it, and it is open whether a majority answers. */
  #phase: "voting" | "raising" | "lost" | "elected" | "over" = "voting";
  #token = 0;
  #unconfirmed: Unconfirmed | undefined;
  readonly #raises: ConfirmAnswer[];
  #onLateVote: ((server: QuorumServer) => void) | undefined;

  /** Asks at once. */
  constructor(facts: BallotFacts) {
    const { runtime, servers } = facts;
    this.#facts = facts;
    this.#votes = servers.map(() => undefined);
    this.#accounted = servers.map(() => false);
    this.#standings = servers.map(() => undefined);
    this.#raises = servers.map(() => "pending");
    this.startedAt = now(runtime);
    for (const server of servers) this.#ask(server);
  }

  /** The id of this attempt, and the lease that it asks for. */
  get claim(): Claim {
    return this.#facts.claim;
  }

  get place(): RedlockPlace {
    return this.#facts.place;
  }

  /** By server; undefined where there is no answer yet. */
  get votes(): readonly (Vote | undefined)[] {
    return this.#votes;
  }

  /** By server: the number that it is known to stand at while it holds for this attempt and for nobody in between. */
  get standings(): readonly (number | undefined)[] {
    return this.#standings;
  }

  /** What each server has answered so far, for a report. */
  get answers(): ServerAnswer[] {
    return this.#votes.map((vote, server) => {
      if (vote?.outcome === "failed") return failed(server, vote.error);
      const restMs = vote?.outcome === "held" ? vote.restMs : undefined;
      const leaseLeftMs = restMs !== undefined && restMs < 0 ? Infinity : restMs;
      return { server, answer: vote?.outcome ?? "none", leaseLeftMs, error: undefined };
    });
  }

  /** Whether it is certain that no request of this attempt can take the lock on that server any more. */
  isAccounted({ index }: QuorumServer): boolean {
    return this.#accounted[index] === true;
  }

  /** What is left of the lease that a majority would have granted, in ms; 0 when it is over. */
  leftMs(): number {
    return msUntil(validUntil(this.startedAt, this.claim.leaseMs), this.#facts.runtime);
  }

  /**
   * Nobody wants it any more: there is no verdict from now on, and no lease.
   *
   * @param onLateVote  told of each answer that comes from now on: what it has granted belongs to nobody
   */
  abandon(onLateVote: (server: QuorumServer) => void): void {
    this.#phase = "over";
    this.#onLateVote = onLateVote;
  }

  #ask(server: QuorumServer): void {
    const { place, claim, timeoutMs } = this.#facts;
    askForVote(server, place, claim, timeoutMs).then(
      (vote) => this.#voted(server, vote),
      (error: unknown) => this.#voted(server, { outcome: "failed", error }),
    );
  }

  #voted(server: QuorumServer, vote: Vote): void {
    this.#votes[server.index] = vote;
    if (vote.outcome === "granted") this.#standings[server.index] = vote.token;
    this.#accounted[server.index] = vote.outcome !== "failed" || !mayHaveRun(vote.error);
    if (this.#phase === "voting") this.#weigh();
    else if (this.#phase === "lost") this.#giveUp();
    else if (this.#phase === "elected") this.#level(server);
    else if (this.#phase === "over") this.#onLateVote?.(server);
  }

  #weigh(): void {
    const decision = decide(this.#votes.map(toAnswer));
    if (decision.outcome === "wait") return;
    if (decision.outcome === "refused") {
      this.#giveUp();
      return;
    }
    this.#token = decision.token;
    if (decision.outcome === "granted") this.#elect();
    else this.#raiseAll(decision);
  }

  /** A majority has granted: it is done when a majority of servers, among those, stands at the token. */
  #raiseAll(unconfirmed: Unconfirmed): void {
    this.#phase = "raising";
    this.#unconfirmed = unconfirmed;
    for (const { server: index, reported } of unconfirmed.behind) {
      const server = this.#facts.servers[index];
      if (server === undefined) continue;
      this.#votes[index] = { outcome: "granted", token: this.#token };
      this.#raise(server, reported).then(
        (isRaised) => this.#raised(server, isRaised ? "confirmed" : { outcome: "held", restMs: 0 }),
        (error: unknown) => this.#raised(server, { outcome: "failed", error }),
      );
    }
  }

  async #raise(server: QuorumServer, reported: number): Promise<boolean> {
    const { place, claim, timeoutMs } = this.#facts;
    const { owner, leaseMs } = claim;
    const token = this.#token;
    const isRaised = await raise(server, place, { owner, reported, token, leaseMs }, timeoutMs);
    if (isRaised) this.#standings[server.index] = token;
    return isRaised;
  }

  /** @param answer  or what the server's vote is worth after all */
  #raised({ index }: QuorumServer, answer: "confirmed" | Vote): void {
    if (this.#phase !== "raising" || this.#unconfirmed === undefined) return;
    this.#raises[index] = answer === "confirmed" ? answer : "refused";
    if (answer !== "confirmed") this.#votes[index] = answer;
    const outcome = confirmed(this.#unconfirmed, this.#raises);
    if (outcome === "granted") this.#elect();
    else if (outcome === "refused") this.#giveUp();
  }

  #elect(): void {
    if (this.#refusesEviction()) return;
    // Read again after the majority: the answers may have waited in the socket of a process that stood still.
    if (this.leftMs() <= 0) {
      this.#end({ outcome: "unreached", error: this.lateError() });
      return;
    }
    this.#end({ outcome: "elected", token: this.#token }, "elected");
    for (const server of this.#facts.servers) this.#level(server);
  }

  /** The error of answers that came when the lease was over. */
  lateError(): QuorumError {
    return quorumError(
      this.place.name,
      this.answers,
      "a majority of the servers granted it, but the lease was over when their answers were read",
    );
  }

  /**
   * Brings a server that granted too, with a lower number, to the token: the lease does not need it, but the next attempt then
   * hears one number from all, and is done in one round trip.
   */
  #level(server: QuorumServer): void {
    const vote = this.#votes[server.index];
    if (vote?.outcome !== "granted" || vote.token >= this.#token) return;
    this.#votes[server.index] = { ...vote, token: this.#token };
    this.#raise(server, vote.token).catch(() => {});
  }

  /** No majority grants it. Whether others are in the way, or too few can be asked, may take more answers. */
  #giveUp(): void {
    if (this.#refusesEviction()) return;
    const votes = this.#votes;
    const failures = votes.filter((vote) => vote?.outcome === "failed").length;
    const open = votes.filter((vote) => vote === undefined).length;
    const { length } = votes;
    const said = tally(length - failures - open, open, length);
    if (said === "granted") this.#end({ outcome: "outvoted" });
    else if (said === "refused") this.#end({ outcome: "unreached", error: quorumError(this.place.name, this.answers) });
    else this.#phase = "lost";
  }

  #refusesEviction(): boolean {
    for (const vote of this.#votes) {
      if (vote?.outcome !== "failed" || !(vote.error instanceof EvictionError)) continue;
      this.#end({ outcome: "evicting", error: vote.error });
      return true;
    }
    return false;
  }

  #end(verdict: Verdict, phase: "elected" | "over" = "over"): void {
    this.#phase = phase;
    this.#facts.onVerdict(verdict);
  }
}

/** A vote as the rule of the decision knows it. */
function toAnswer(vote: Vote | undefined): Decided {
  if (vote === undefined) return { outcome: "pending" };
  return vote.outcome === "granted" ? vote : { outcome: "refused" };
}

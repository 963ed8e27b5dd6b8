/**
 * One attempt to win a majority of the servers, under an owner id that no other attempt uses.
 *
 * Asks all servers in parallel, or one server first. Each server that grants replies with its own number, and the token
 * is the highest number in a majority. If fewer than a majority have the token as their number, the attempt raises
 * the numbers of the other servers in this majority to the token. It raises a number only if the server still holds the
 * lock for this attempt and has not changed the number since its reply. docs/adr/092-tokens-on-a-quorum.md explains why
 * this makes tokens rise without any assumption about time.
 *
 * Invariants:
 * - The lease is counted from the moment before the first request was sent.
 * - Once the replies decide the attempt, it does not wait for stragglers.
 * - The majority that determines the token is fixed when the attempt is decided. Only its members count.
 * - A later grant by a straggler belongs to the lease if the attempt won. Otherwise, that grant is released.
 */
import { call } from "../core/call.js";
import { EvictionError, ProtocolError, type QuorumError } from "../core/errors.js";
import type { Claim } from "../core/protocol.js";
import type { Runtime, Timer } from "../core/runtime.js";
import type { Outcome } from "../core/store.js";
import { type Moment, msUntil, now, validUntil } from "../core/time.js";
import { redlockAcquire, redlockConfirm } from "../generated/redlock.js";
import { type AcquireVote, type ConfirmAnswer, confirmed, decide, tally, type Unconfirmed } from "./decision.js";
import { informedRun } from "./memories.js";
import {
  count,
  type Failed,
  failure,
  mayHaveRun,
  type QuorumServer,
  quorumError,
  type RedlockPlace,
} from "./servers.js";

/** The answer of one server to an attempt. */
export type Vote = Outcome<(typeof redlockAcquire)["replies"][number]> | Failed;

/**
 * The outcome of an attempt.
 *
 * - `elected`: a majority holds the lock for this attempt and has the token as its number; the lease has not ended
 * - `outvoted`: a majority replied, but too few servers granted; or another owner holds the first server
 * - `unreached`: no majority replied, or a majority replied too late
 * - `refused`: a server must not be used, because it may evict the lock or a different protocol is in use there
 */
export type Verdict =
  | { readonly outcome: "elected"; readonly token: number }
  | { readonly outcome: "outvoted" }
  | { readonly outcome: "unreached"; readonly error: QuorumError }
  | { readonly outcome: "refused"; readonly error: EvictionError | ProtocolError };

/** The parameters of an attempt. */
export interface BallotFacts {
  readonly runtime: Runtime;
  readonly servers: readonly QuorumServer[];
  readonly place: RedlockPlace;
  readonly claim: Claim;
  /** The timeout for each reply, in ms. */
  readonly timeoutMs: number;
  /**
   * The server that concurrent attempts ask first; none by default. Only the attempt that wins this server asks the
   * others, so the losing attempts take nothing that could block it.
   */
  readonly firstServer?: QuorumServer | undefined;
  /** How long to wait for the first server, in ms, before asking the others anyway. */
  readonly patienceMs?: number;
  /** Called once, when the attempt is decided; never after `abandon`. */
  readonly onVerdict: (verdict: Verdict) => void;
}

/** One attempt to win a majority of the servers. */
export class Ballot {
  readonly place: RedlockPlace;
  /** The claim of this attempt: its owner id and the lease that it requests. */
  readonly claim: Claim;
  /** The server that this attempt asks first; undefined if it asks all in parallel. */
  readonly firstServer: QuorumServer | undefined;
  readonly #facts: BallotFacts;
  readonly #votes: (Vote | undefined)[];
  /** For each server, the state of the acquire request. `over`: the request can no longer take the lock there. */
  readonly #requests: ("unsent" | "sent" | "over")[];
  /**
   * The run of each server that knew this lease length before the attempt sent its first request; undefined for the
   * others.
   */
  readonly #informedRuns: readonly (string | undefined)[];
  readonly #standings: (number | undefined)[];
  /** The moment before the first request was sent. */
  readonly startedAt: Moment;
  /** `lost`: no majority can grant anymore, but it is not yet known whether a majority will reply. */
  #phase: "voting" | "raising" | "lost" | "elected" | "over" = "voting";
  #token = 0;
  #longestMs: number;
  #onLateVote: ((server: QuorumServer) => void) | undefined;

  /** Set while only the first server has been asked. */
  #firstServerTimer: Timer | undefined;

  /** Sends the first requests immediately. */
  constructor(facts: BallotFacts) {
    const { runtime, servers, place, claim, firstServer, patienceMs = 0 } = facts;
    this.#facts = facts;
    this.place = place;
    this.claim = claim;
    this.firstServer = firstServer;
    this.#votes = servers.map(() => undefined);
    this.#requests = servers.map(() => "unsent");
    this.#informedRuns = servers.map((server) => informedRun(server, claim.leaseMs));
    this.#standings = servers.map(() => undefined);
    this.startedAt = now(runtime);
    this.#longestMs = claim.leaseMs;
    if (firstServer === undefined) {
      this.#askOthers();
    } else {
      this.#firstServerTimer = runtime.startTimer(() => this.#askOthers(), patienceMs, true);
      this.#ask(firstServer);
    }
  }

  /** The longest lease that was requested from the servers, in ms. */
  get longestMs(): number {
    return this.#longestMs;
  }

  /** Records that the servers are asked to extend the lease to `leaseMs`. */
  requested(leaseMs: number): void {
    this.#longestMs = Math.max(this.#longestMs, leaseMs);
  }

  /** Whether this attempt was granted and has not been released yet. */
  get isElected(): boolean {
    return this.#phase === "elected";
  }

  /** Whether another owner holds the first server. */
  get lostAtFirst(): boolean {
    return this.firstServer !== undefined && this.#votes[this.firstServer.index]?.outcome === "held";
  }

  /** The votes by server; undefined where there is no reply yet. */
  get votes(): readonly (Vote | undefined)[] {
    return this.#votes;
  }

  /**
   * For each server, its number for this attempt: the one in its reply, or the token of the lease if the server was
   * later given that token. Undefined if the server did not grant.
   */
  get standings(): readonly (number | undefined)[] {
    return this.#standings;
  }

  /** Whether a request was sent to this server. */
  isAsked({ index }: QuorumServer): boolean {
    return this.#requests[index] !== "unsent";
  }

  /** Whether it is certain that no acquire request of this attempt can still take the lock on this server. */
  isAccounted({ index }: QuorumServer): boolean {
    return this.#requests[index] !== "sent";
  }

  /** The remaining time of the lease, in ms, if a majority grants it; 0 if the lease has ended. */
  leftMs(): number {
    return msUntil(validUntil(this.startedAt, this.claim.leaseMs), this.#facts.runtime);
  }

  /**
   * Ends the attempt, and its lease if it was granted. After this, `onVerdict` is not called.
   *
   * @param onLateVote  called for each later reply, because a late grant must be released
   */
  abandon(onLateVote: (server: QuorumServer) => void): void {
    this.#phase = "over";
    this.#firstServerTimer?.cancel();
    this.#onLateVote = onLateVote;
  }

  #askOthers(): void {
    this.#firstServerTimer?.cancel();
    this.#firstServerTimer = undefined;
    for (const server of this.#facts.servers) if (!this.isAsked(server)) this.#ask(server);
  }

  #ask(server: QuorumServer): void {
    this.#requests[server.index] = "sent";
    const { place, timeoutMs } = this.#facts;
    const { store, guard } = server;
    const { name } = place;
    const { owner, leaseMs } = this.claim;
    const send = (): Promise<Vote> => call({ store, name }, redlockAcquire, place, { owner, leaseMs }, timeoutMs);
    (guard.isOpen ? send() : guard.pass(name, send, timeoutMs)).then(
      (vote) => this.#voted(server, vote),
      (error: unknown) => this.#voted(server, { outcome: "failed", error }),
    );
  }

  #voted(server: QuorumServer, answer: Vote): void {
    if (answer.outcome !== "failed" || !mayHaveRun(answer.error)) this.#requests[server.index] = "over";
    const vote = this.#counted(server, answer);
    this.#votes[server.index] = vote;
    if (vote.outcome === "granted") this.#standings[server.index] = vote.token;
    if (this.#phase === "voting" && this.#firstServerTimer !== undefined) this.#passFirst(vote);
    else if (this.#phase === "voting") this.#weigh();
    else if (this.#phase === "lost") this.#giveUp();
    else if (this.#phase === "elected") this.#level(server);
    else if (this.#phase === "over") this.#onLateVote?.(server);
  }

  /**
   * Returns the vote if it counts; otherwise a failure. A grant does not count if the server learned the length of
   * the lease too late, or has restarted since (see memories.ts).
   */
  #counted(server: QuorumServer, vote: Vote): Vote {
    if (vote.outcome !== "granted") return vote;
    const { place, claim } = this;
    const run = this.#informedRuns[server.index];
    if (run !== undefined && informedRun(server, claim.leaseMs) === run) return vote;
    const cause = "its grant does not count, because it learned the lease length too late or has restarted since";
    return failure(place.name, { mayHaveRun: true, transient: true, cause });
  }

  #passFirst(vote: Vote): void {
    if (vote.outcome === "held") {
      this.#firstServerTimer?.cancel();
      this.#end({ outcome: "outvoted" });
    } else {
      this.#askOthers();
      this.#weigh();
    }
  }

  #weigh(): void {
    const decision = decide(this.#votes.map(simplified));
    if (decision.outcome === "wait") return;
    if (decision.outcome === "refused") {
      this.#giveUp();
      return;
    }
    this.#token = decision.token;
    if (decision.outcome === "granted") this.#elect();
    else this.#raiseAll(decision);
  }

  /** Raises the lower numbers to the token. The attempt is granted when a majority of the servers has the token. */
  #raiseAll(unconfirmed: Unconfirmed): void {
    this.#phase = "raising";
    const raises: ConfirmAnswer[] = this.#votes.map(() => "pending");
    for (const { server: index, reported } of unconfirmed.behind) {
      const server = this.#facts.servers[index];
      if (server === undefined) continue;
      this.#votes[index] = { outcome: "granted", token: this.#token };
      /** Records the server's confirmation, or the vote that replaces its grant. */
      const settle = (answer: "confirmed" | Vote): void => {
        if (this.#phase !== "raising") return;
        raises[index] = answer === "confirmed" ? answer : "refused";
        if (answer !== "confirmed") this.#votes[index] = answer;
        const outcome = confirmed(unconfirmed, raises);
        if (outcome === "granted") this.#elect();
        else if (outcome === "refused") this.#giveUp();
      };
      this.#raise(server, reported).then(
        (outcome) => settle(outcome === "confirmed" ? outcome : { outcome: "held", restMs: 0 }),
        (error: unknown) => settle({ outcome: "failed", error }),
      );
    }
  }

  async #raise({ index, store }: QuorumServer, reported: number): Promise<"confirmed" | "refused"> {
    const { place, timeoutMs } = this.#facts;
    const { owner, leaseMs } = this.claim;
    const token = this.#token;
    const args = { owner, reported, token, leaseMs };
    const { outcome } = await call({ store, name: place.name }, redlockConfirm, place, args, timeoutMs);
    if (outcome === "confirmed") this.#standings[index] = token;
    return outcome;
  }

  #elect(): void {
    if (this.#refusesServer()) return;
    // Check the time here, because the process may have been suspended while the replies were in its socket.
    if (this.leftMs() <= 0) {
      this.#end({ outcome: "unreached", error: this.lateError() });
      return;
    }
    this.#end({ outcome: "elected", token: this.#token }, "elected");
    for (const server of this.#facts.servers) this.#level(server);
  }

  /** Returns the error for replies that were read after the lease had ended. */
  lateError(): QuorumError {
    return quorumError(this.place.name, this.#votes, {
      why: "a majority of the servers granted it, but the lease had expired when their replies were read",
    });
  }

  /**
   * Raises a server's token counter to the token, if the server granted with a lower number. This lease does not need
   * that, but the next attempt then gets the same number from all servers and needs only one round trip.
   */
  #level(server: QuorumServer): void {
    const vote = this.#votes[server.index];
    if (vote?.outcome !== "granted" || vote.token >= this.#token) return;
    this.#votes[server.index] = { ...vote, token: this.#token };
    this.#raise(server, vote.token).catch(() => {});
  }

  /**
   * Called when no majority can grant anymore. The verdict depends on whether a majority replies at all, so this may
   * wait for more replies.
   */
  #giveUp(): void {
    if (this.#refusesServer()) return;
    const votes = this.#votes;
    const open = votes.filter((vote) => vote === undefined).length;
    const replied = tally(count(votes), open, votes.length);
    if (replied === "granted") this.#end({ outcome: "outvoted" });
    else if (replied === "refused") this.#end({ outcome: "unreached", error: quorumError(this.place.name, votes) });
    else this.#phase = "lost";
  }

  #refusesServer(): boolean {
    for (const vote of this.#votes) {
      if (vote?.outcome !== "failed") continue;
      const { error } = vote;
      if (!(error instanceof EvictionError || error instanceof ProtocolError)) continue;
      this.#end({ outcome: "refused", error });
      return true;
    }
    return false;
  }

  #end(verdict: Verdict, phase: "elected" | "over" = "over"): void {
    this.#phase = phase;
    this.#facts.onVerdict(verdict);
  }
}

/** Converts a vote to the form that `decide` uses. */
function simplified(vote: Vote | undefined): AcquireVote {
  if (vote === undefined) return { outcome: "pending" };
  return vote.outcome === "granted" ? vote : { outcome: "refused" };
}

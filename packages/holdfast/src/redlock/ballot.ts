/**
 * One attempt to win a majority of the servers, under an owner id that no other attempt uses.
 *
 * Asks all servers in parallel, or one server first. Each server that grants replies with its own number, and the
 * token is the maximum of the numbers of a majority. If fewer than a majority have that number, the attempt raises the
 * other servers of this majority to the token. It raises a server only if the server still holds for this attempt and
 * still has the number that it replied with. docs/adr/092-tokens-on-a-quorum.md explains why tokens then rise without
 * any assumption about time.
 *
 * Invariants:
 * - The lease counts from before the first request.
 * - Once the replies decide the attempt, it does not wait for stragglers.
 * - The majority from which the token was taken is fixed at that moment, and only its members count.
 * - A later grant of a straggler belongs to the lease if there is one. Otherwise it is released.
 */
import type { ServerAnswer } from "../core/error-messages.js";
import { EvictionError, ProtocolError, type QuorumError, StoreError } from "../core/errors.js";
import type { Claim } from "../core/protocol.js";
import type { Runtime, Timer } from "../core/runtime.js";
import { type Moment, msUntil, now, validUntil } from "../core/time.js";
import { type ConfirmAnswer, confirmed, decide, tally, type Unconfirmed } from "./decision.js";
import { toldIn } from "./memories.js";
import { askForVote, mayHaveRun, type QuorumServer, quorumError, type RedlockPlace, raise } from "./servers.js";
import { reportOf, toAnswer, type Verdict, type Vote } from "./vote.js";

/**
 * The server that concurrent attempts ask first. Only the attempt that wins this server continues to the others, so
 * the losing attempts have taken nothing that blocks it.
 */
export interface FirstServer {
  readonly server: QuorumServer;
  /** How long to wait for the first server, in ms, before asking the others anyway. */
  readonly patienceMs: number;
}

/** What an attempt needs. */
export interface BallotFacts {
  readonly runtime: Runtime;
  readonly servers: readonly QuorumServer[];
  readonly place: RedlockPlace;
  readonly claim: Claim;
  /** Longest wait for each reply, in ms. */
  readonly timeoutMs: number;
  /** The server to ask before the others, which are not asked at all if another owner holds there. By default none. */
  readonly firstServer?: FirstServer | undefined;
  /** Called once, when the attempt is decided; never after `abandon`. */
  readonly onVerdict: (verdict: Verdict) => void;
}

/** One attempt to win a majority of the servers. */
export class Ballot {
  readonly #facts: BallotFacts;
  readonly #votes: (Vote | undefined)[];
  readonly #asked: boolean[];
  readonly #accounted: boolean[];
  /** By server: the server run in which it knew of leases this long, before the first server was asked for this one. */
  readonly #toldIn: readonly (string | undefined)[];
  readonly #standings: (number | undefined)[];
  /** The moment before the first request was sent. */
  readonly startedAt: Moment;
  /** `lost`: no majority can grant any more, but it is not yet known whether a majority replies. */
  #phase: "voting" | "raising" | "lost" | "elected" | "over" = "voting";
  #token = 0;
  #longestMs: number;
  #unconfirmed: Unconfirmed | undefined;
  readonly #raises: ConfirmAnswer[];
  #onLateVote: ((server: QuorumServer) => void) | undefined;

  /** Set while only the first server has been asked. */
  #firstServerTimer: Timer | undefined;

  /** Sends the first requests immediately. */
  constructor(facts: BallotFacts) {
    const { runtime, servers, firstServer } = facts;
    this.#facts = facts;
    this.#votes = servers.map(() => undefined);
    this.#asked = servers.map(() => false);
    this.#accounted = servers.map(() => false);
    this.#toldIn = servers.map((server) => toldIn(server, facts.claim.leaseMs));
    this.#standings = servers.map(() => undefined);
    this.#raises = servers.map(() => "pending");
    this.startedAt = now(runtime);
    this.#longestMs = facts.claim.leaseMs;
    if (firstServer === undefined) {
      this.#askOthers();
    } else {
      this.#firstServerTimer = runtime.startTimer(() => this.#askOthers(), firstServer.patienceMs, true);
      this.#ask(firstServer.server);
    }
  }

  /** The claim of this attempt: its owner id and the lease that it requests. */
  get claim(): Claim {
    return this.#facts.claim;
  }

  get place(): RedlockPlace {
    return this.#facts.place;
  }

  /** The longest lease that was requested from the servers, in ms. */
  get longestMs(): number {
    return this.#longestMs;
  }

  /** Records that the servers are asked to extend the lease to `leaseMs`. */
  asked(leaseMs: number): void {
    this.#longestMs = Math.max(this.#longestMs, leaseMs);
  }

  /** Whether this attempt was granted and has not been released yet. */
  get isElected(): boolean {
    return this.#phase === "elected";
  }

  /** The server that this attempt asks first, if any. */
  get firstServer(): QuorumServer | undefined {
    return this.#facts.firstServer?.server;
  }

  /** The votes by server; undefined where there is no reply yet. */
  get votes(): readonly (Vote | undefined)[] {
    return this.#votes;
  }

  /** By server: the number that it is known to have, as long as it has held for this attempt without interruption. */
  get standings(): readonly (number | undefined)[] {
    return this.#standings;
  }

  /** The replies of the servers so far, for an error report. */
  get answers(): ServerAnswer[] {
    return reportOf(this.#votes);
  }

  /** Whether a request was sent to this server. */
  isAsked({ index }: QuorumServer): boolean {
    return this.#asked[index] === true;
  }

  /** Whether it is certain that no acquire request of this attempt can still take the lock on this server. */
  isAccounted({ index }: QuorumServer): boolean {
    return this.#accounted[index] === true || this.#asked[index] !== true;
  }

  /** The remaining lease if a majority grants it, in ms; 0 if it has ended. */
  leftMs(): number {
    return msUntil(validUntil(this.startedAt, this.claim.leaseMs), this.#facts.runtime);
  }

  /**
   * Ends the attempt. From now on there is no verdict and no lease.
   *
   * @param onLateVote  called for each reply that arrives from now on, because its grant has to be released
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
    this.#asked[server.index] = true;
    const { place, claim, timeoutMs } = this.#facts;
    askForVote(server, place, claim, timeoutMs).then(
      (vote) => this.#voted(server, vote),
      (error: unknown) => this.#voted(server, { outcome: "failed", error }),
    );
  }

  #voted(server: QuorumServer, answer: Vote): void {
    this.#accounted[server.index] = answer.outcome !== "failed" || !mayHaveRun(answer.error);
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
   * Returns the vote if it counts. It does not if the server did not know the length of the lease in time, or has
   * restarted since (see memories.ts).
   */
  #counted(server: QuorumServer, vote: Vote): Vote {
    if (vote.outcome !== "granted") return vote;
    const { place, claim } = this.#facts;
    const run = this.#toldIn[server.index];
    if (run !== undefined && toldIn(server, claim.leaseMs) === run) return vote;
    const cause = "it was told how long the lease is after the first server was asked, so its vote does not count";
    return { outcome: "failed", error: new StoreError(place.name, { mayHaveRun: true, transient: true, cause }) };
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

  /** Raises the servers with a lower number. The attempt is granted when a majority of the servers has the token. */
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

  /** @param answer  "confirmed", or the vote that now counts for this server */
  #raised({ index }: QuorumServer, answer: "confirmed" | Vote): void {
    if (this.#phase !== "raising" || this.#unconfirmed === undefined) return;
    this.#raises[index] = answer === "confirmed" ? answer : "refused";
    if (answer !== "confirmed") this.#votes[index] = answer;
    const outcome = confirmed(this.#unconfirmed, this.#raises);
    if (outcome === "granted") this.#elect();
    else if (outcome === "refused") this.#giveUp();
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
    return quorumError(this.place.name, this.answers, {
      why: "a majority of the servers granted it, but the lease was over when their answers were read",
    });
  }

  /**
   * Raises a server that granted with a lower number to the token. This lease does not need it, but the next attempt
   * then gets the same number from all servers and needs only one round trip.
   */
  #level(server: QuorumServer): void {
    const vote = this.#votes[server.index];
    if (vote?.outcome !== "granted" || vote.token >= this.#token) return;
    this.#votes[server.index] = { ...vote, token: this.#token };
    this.#raise(server, vote.token).catch(() => {});
  }

  /** No majority can grant. Whether a majority replies at all decides the verdict, and that may need more replies. */
  #giveUp(): void {
    if (this.#refusesServer()) return;
    const votes = this.#votes;
    const failures = votes.filter((vote) => vote?.outcome === "failed").length;
    const open = votes.filter((vote) => vote === undefined).length;
    const { length } = votes;
    const said = tally(length - failures - open, open, length);
    if (said === "granted") this.#end({ outcome: "outvoted" });
    else if (said === "refused") this.#end({ outcome: "unreached", error: quorumError(this.place.name, this.answers) });
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

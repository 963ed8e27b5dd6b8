/**
 * One attempt to win a majority, under an owner id of its own that no other attempt ever has.
 *
 * All servers are asked at once, or one of them first. The token is the maximum of the numbers that a majority answered; if not a majority stands
 * at it, those below are raised, each only where it still holds for this attempt and stands where it said
 * (docs/adr/092-tokens-on-a-quorum.md says why that makes tokens rise without any assumption about time).
 *
 * Invariants: validity counts from before the first request; nobody waits for stragglers once the answers decide; the
 * majority from which the token was taken is fixed at that moment, and only its members count; what a straggler grants
 * later belongs to the lease if there is one, and is given back if there is none.
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
 * The server that those who come at the same moment ask first: whoever is the first there goes on alone, and the others
 * have taken nothing that stands in its way.
 */
export interface FirstServer {
  readonly server: QuorumServer;
  /** The others are asked all the same when it has been silent for so long. */
  readonly patienceMs: number;
}

/** What an attempt needs to know. */
export interface BallotFacts {
  readonly runtime: Runtime;
  readonly servers: readonly QuorumServer[];
  readonly place: RedlockPlace;
  readonly claim: Claim;
  /** Longest wait for each answer. */
  readonly timeoutMs: number;
  /** Asked before all others, which are not asked at all if somebody else holds there; none by default. */
  readonly firstServer?: FirstServer | undefined;
  /** Called once. */
  readonly onVerdict: (verdict: Verdict) => void;
}

/** See the file header. */
export class Ballot {
  readonly #facts: BallotFacts;
  readonly #votes: (Vote | undefined)[];
  readonly #asked: boolean[];
  readonly #accounted: boolean[];
  /** By server: in which run it was told of so long a lease before the first of them was asked. */
  readonly #toldIn: readonly (string | undefined)[];
  readonly #standings: (number | undefined)[];
  /** Before the first request was sent. */
  readonly startedAt: Moment;
  /** `lost`: no majority grants it, and it is open whether a majority answers. */
  #phase: "voting" | "raising" | "lost" | "elected" | "over" = "voting";
  #token = 0;
  #longestMs: number;
  #unconfirmed: Unconfirmed | undefined;
  readonly #raises: ConfirmAnswer[];
  #onLateVote: ((server: QuorumServer) => void) | undefined;

  /** While the first server is asked, and nobody else is. */
  #firstServerTimer: Timer | undefined;

  /** Asks at once. */
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

  /** The id of this attempt, and the lease that it asks for. */
  get claim(): Claim {
    return this.#facts.claim;
  }

  get place(): RedlockPlace {
    return this.#facts.place;
  }

  /** The longest lease that the servers were asked for, in ms. */
  get longestMs(): number {
    return this.#longestMs;
  }

  /** The servers are asked for another one. */
  asked(leaseMs: number): void {
    this.#longestMs = Math.max(this.#longestMs, leaseMs);
  }

  /** Whether there is a lease of it, which nobody has given back yet. */
  get isElected(): boolean {
    return this.#phase === "elected";
  }

  /** The server that was to be asked first, if any. */
  get firstServer(): QuorumServer | undefined {
    return this.#facts.firstServer?.server;
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
    return reportOf(this.#votes);
  }

  /** Whether that server was asked at all. */
  isAsked({ index }: QuorumServer): boolean {
    return this.#asked[index] === true;
  }

  /** Whether it is certain that no request of this attempt can take the lock on that server any more. */
  isAccounted({ index }: QuorumServer): boolean {
    return this.#accounted[index] === true || this.#asked[index] !== true;
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

  /** The vote, which is worth nothing if its server had not been told in time, or has begun another run since (redlock/memories.ts). */
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
    if (this.#refusesServer()) return;
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
    return quorumError(this.place.name, this.answers, {
      why: "a majority of the servers granted it, but the lease was over when their answers were read",
    });
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

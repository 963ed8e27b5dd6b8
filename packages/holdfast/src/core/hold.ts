/**
 * A granted claim, kept alive until it is released or lost.
 *
 * Invariants: only two things are a loss, an answer that says so and the end of validity; a loss is told once;
 * after the end no timer runs and no renewal is sent; the truth is computed from the clocks at the call, and
 * the timer only makes sure that somebody who does not call is told too.
 */
import { depart } from "./departure.js";
import type { Engine, Occupant } from "./engine.js";
import { type LossReason, StoreError, UnsupportedError } from "./errors.js";
import { describeExport } from "./exporting.js";
import { giveBack, giveBackLate } from "./giving-back.js";
import type { Ended, ExportedLease, Holding } from "./holding.js";
import { LOOK_MS } from "./lookout.js";
import { publishRenew, RenewalSchedule } from "./renewal.js";
import type { Timer } from "./runtime.js";
import type { Claim, Grant, NotHeld, Steps } from "./steps.js";
import { Term } from "./term.js";
import type { Turn } from "./turn.js";
import { type Moment, now } from "./validity.js";

/** How a hold is kept. */
export interface HoldOptions {
  readonly renew: boolean;
  readonly maxHoldMs: number;
}

/** See the file header. */
export class Hold implements Occupant, Holding {
  readonly #engine: Engine;
  readonly #steps: Steps;
  readonly #options: HoldOptions;
  readonly #lossListeners: ((reason: LossReason) => void)[] = [];
  #lost: LossReason | undefined;
  /** Set by `close`, which gives back without being asked: whether the server has answered. */
  #givenBack: Promise<boolean> | undefined;
  #grant: Grant;
  readonly #term: Term;
  readonly #renewal: RenewalSchedule;
  /** Lost or given up: from then on this object sends nothing by itself. */
  #isOver = false;
  #timer: Timer | undefined;
  /** For the lookout, once it has been held for a moment: most holds are over before. */
  readonly #look = (): void => void this.validForMs();
  #isLookedAfter = false;
  readonly #mayStillRun: () => boolean;
  readonly #turn: Turn | undefined;
  #token: number;
  #isAsGranted = true;
  /** A request that puts it back may still be under way. */
  #mayBePutBack = false;

  /**
   * @param grant        as the server has it: of several reserved tokens the last
   * @param mayStillRun  whether a request of the claim may still be under way, and is to be undone when it arrives
   * @param turn         which turn of the claim this is, if it serves several leases
   */
  constructor(
    engine: Engine,
    steps: Steps,
    grant: Grant,
    setAt: Moment,
    options: HoldOptions,
    mayStillRun: () => boolean = () => false,
    turn?: Turn,
  ) {
    this.#turn = turn;
    this.#token = turn?.token ?? grant.token;
    this.#mayStillRun = () => this.#mayBePutBack || mayStillRun();
    this.#grant = grant;
    this.#engine = engine;
    this.#steps = steps;
    this.#options = options;
    const { leaseMs } = grant.claim;
    this.#term = new Term(engine.runtime, setAt, leaseMs);
    const firstAtMs = options.renew ? setAt.monotonicMs + leaseMs / 3 : Infinity;
    this.#renewal = new RenewalSchedule(engine.runtime, firstAtMs);
    engine.admit(grant.claim, this);
    this.#arm();
  }

  get heldSinceAtMs(): number {
    return this.#term.sinceAtMs;
  }

  get kind(): string {
    return this.#steps.kind;
  }

  get lockName(): string {
    return this.#steps.name;
  }

  /** The key of the lock, the same for whatever means the same lock. */
  get lockKey(): string {
    return this.#steps.key;
  }

  /** Length of the lease that a renewal asks for, in ms. */
  get leaseMs(): number {
    return this.#term.leaseMs;
  }

  /** How it is kept, as it was asked for. */
  get options(): HoldOptions {
    return this.#options;
  }

  /** What the server has granted, and compares; the same for the life of the hold, unless the kind can change it. */
  get grant(): Grant {
    return this.#grant;
  }

  get owner(): string {
    return this.#grant.claim.owner;
  }

  get token(): number {
    return this.#token;
  }

  /** From now on it may hold something else than it was granted, and a server that has lost it would not know what. */
  changes(): void {
    this.#isAsGranted = false;
  }

  /** The server has changed what this claim holds, as in an upgrade: from now on it goes by the new grant. */
  regranted(token: number): void {
    this.#grant = { ...this.#grant, token };
    this.#token = token;
  }

  onLost(listener: (reason: LossReason) => void): void {
    if (this.#lost === undefined) this.#lossListeners.push(listener);
    else listener(this.#lost);
  }

  validForMs(): number {
    if (this.#isOver) return 0;
    const leftMs = this.#term.leftMs();
    if (leftMs <= 0) this.lose("expired");
    return leftMs;
  }

  heldMs(): number {
    return this.#term.heldMs();
  }

  async extend(leaseMs: number): Promise<"extended" | NotHeld> {
    const outcome = await this.#extend(leaseMs, this.#engine.commandTimeoutMs);
    if (outcome === "extended") {
      this.#term.leaseMs = leaseMs;
      if (this.#options.renew) this.#renewal.restart(leaseMs);
      this.#arm();
    } else {
      this.lose(this.#reasonOf());
    }
    return outcome;
  }

  /** Ends the hold in time and without a word to the server: a script has already undone it, or it goes on elsewhere. */
  end(): void {
    if (this.#isOver) return;
    this.#stop();
    this.#forgetCopies();
    this.#turn?.over();
  }

  /** The holder ends it, in time. A second copy of its grant that comes now must not undo it before what ends it on the server. */
  #forgetCopies(): void {
    this.#engine.handedOver(this.#grant.claim, this.#grant.token);
  }

  #stop(): void {
    this.#isOver = true;
    this.#timer?.cancel();
    if (this.#isLookedAfter) this.#engine.lookout.leave(this.#look);
    this.#engine.dismiss(this.#grant.claim, this);
  }

  /**
   * Undoes what a request of the claim does that may still be under way. Only for a hold that a script has undone
   * already: whatever this claim has from then on, nobody uses.
   */
  undoLateRequests(): void {
    if (!this.#mayStillRun()) return;
    void depart(this.#engine, this.#steps, this.#claimAsExtended(), true, this.#engine.commandTimeoutMs);
  }

  /** Ends the hold and tells who listens why, once. */
  lose(reason: LossReason): void {
    if (this.#isOver) return;
    this.#stop();
    this.#lost = reason;
    for (const listener of this.#lossListeners) listener(reason);
    this.#turn?.over();
  }

  handOver(): ExportedLease {
    const { kind, name, exported } = this.#steps;
    if (exported === undefined) throw new UnsupportedError(name, `A lease of a ${kind} cannot be exported.`);
    const exportedLease = describeExport(this.#steps, exported, this.#grant, this.#token, this.#term, this.#options);
    this.end();
    return exportedLease;
  }

  /** As `giveBack`; after `close` it only tells how that ended. */
  async release(): Promise<Ended> {
    if (this.#givenBack !== undefined) {
      if (await this.#givenBack) return "released";
      const cause = new Error("this Holdfast was closed while the server did not answer");
      throw new StoreError(this.lockName, { mayHaveRun: true, transient: true, cause });
    }
    const isLate = this.validForMs() <= 0;
    if (!isLate) {
      this.#stop();
      if (this.#turn?.passOn(this.#term.longestMs) === true) return "released";
      this.#forgetCopies();
    }
    const given = {
      engine: this.#engine,
      steps: this.#steps,
      grant: this.#grant,
      claim: this.#claimAsExtended(),
      mayStillRun: this.#mayStillRun,
      reclaim: () => this.#reclaim(this.#term.leaseMs, this.#engine.commandTimeoutMs),
    };
    // Sent before the others ask for a claim of their own, so that they need not wait for this one.
    const ending = isLate ? giveBackLate(given) : giveBack(given);
    if (!isLate) this.#turn?.over();
    return ending;
  }

  granted(): void {
    // A second copy of the grant that is held already.
  }

  poked(): void {
    // Whoever holds is told of what concerns it by the answers to its renewals.
  }

  revoked(): void {
    this.lose("force-released");
  }

  reconnected(connection: "commands" | "inbox"): void {
    if (!this.#options.renew || this.#isOver) return;
    // The server may be another one now, which has lost it: the sooner it is asked, the sooner it is put back.
    const mayHaveLost = connection === "commands" && this.#steps.reclaim !== undefined;
    if (this.#renewal.hurry(mayHaveLost)) this.#arm();
  }

  async close(): Promise<void> {
    if (this.#isOver) return;
    this.lose("closed");
    this.#givenBack = depart(this.#engine, this.#steps, this.#claimAsExtended(), false, this.#engine.commandTimeoutMs);
    await this.#givenBack;
  }

  /** For the departure, which goes on for as long as the lease on the server may last. */
  #claimAsExtended(): Claim {
    const { claim } = this.#grant;
    return { ...claim, leaseMs: Math.max(claim.leaseMs, this.#term.longestMs) };
  }

  /** One timer for whatever comes first: the end of validity, the longest hold, the next renewal, the first look. */
  #arm(): void {
    this.#timer?.cancel();
    if (this.#isOver) return;
    const inMs = Math.min(
      this.#term.leftMs(),
      this.#options.maxHoldMs - this.heldMs(),
      this.#renewal.dueInMs(),
      this.#isLookedAfter ? Infinity : LOOK_MS,
    );
    this.#timer = this.#engine.runtime.startTimer(() => this.#tick(), Math.max(0, inMs), false);
  }

  #tick(): void {
    if (this.validForMs() <= 0) return;
    if (!this.#isLookedAfter) {
      this.#isLookedAfter = true;
      this.#engine.lookout.join(this.#look);
    }
    if (this.heldMs() >= this.#options.maxHoldMs) {
      this.lose("max-hold");
      return;
    }
    if (this.#renewal.dueInMs() <= 0) void this.#renew();
    this.#arm();
  }

  async #renew(): Promise<void> {
    this.#renewal.begun();
    let outcome: "extended" | NotHeld | undefined;
    let failure: unknown;
    try {
      // With the pause after a failure, short enough for three tries before the lease is over, however short it is.
      outcome = await this.#extend(this.#term.leaseMs, Math.min(this.#engine.commandTimeoutMs, this.#term.leaseMs / 6));
    } catch (error) {
      failure = error;
    }
    this.#renewal.settled();
    if (this.#isOver) return;
    if (outcome === undefined) this.#renewal.failed(this.#term.leaseMs);
    else if (outcome === "extended") this.#renewal.succeeded(this.#term.leaseMs);
    else this.lose(this.#reasonOf());
    publishRenew(this.#steps, this, failure, () => this.validForMs());
    this.#arm();
  }

  async #extend(leaseMs: number, timeoutMs: number): Promise<"extended" | NotHeld> {
    const sentAt = now(this.#engine.runtime);
    this.#term.asked(leaseMs);
    let outcome = await this.#steps.extend(this.#grant, leaseMs, timeoutMs);
    if (outcome !== "extended" && (await this.#reclaim(leaseMs, timeoutMs))) outcome = "extended";
    if (outcome === "extended") this.#term.extended(sentAt, leaseMs);
    return outcome;
  }

  /** Only while it is still good: once it may be over, others may have been granted. @throws StoreError */
  async #reclaim(leaseMs: number, timeoutMs: number): Promise<boolean> {
    if (this.#steps.reclaim === undefined || !this.#isAsGranted || this.#term.leftMs() <= 0) return false;
    try {
      return (await this.#steps.reclaim(this.#grant, leaseMs, timeoutMs)) === "reclaimed";
    } catch (error) {
      this.#mayBePutBack = true;
      throw error;
    }
  }

  /** The server says that the claim does not hold. A forced release would have been told by a message. */
  #reasonOf(): LossReason {
    if (this.#term.leftMs() <= 0) return "expired";
    return "server-lost";
  }
}

/**
 * A granted claim, kept alive until it is released or lost.
 */

import type { HeldLease, Settled } from "./closing.js";
import { type Forced, type LossReason, StoreError, UnsupportedError } from "./errors.js";
import { aboutLock, channels, type GrantEvent } from "./events.js";
import { describeExport, type Ended, type ExportedLease, type Holding, type LossListener } from "./lease.js";
import { type Claim, type Grant, type Granted, type LockProtocol, type NotHeld, parseOwner } from "./protocol.js";
import { cleanUp, giveBack, giveBackLate } from "./release.js";
import { type HoldOptions, type Kept, Renewer } from "./renewer.js";
import type { Occupant, Session } from "./session.js";
import type { Moment } from "./time.js";

/** What there is to know of a hold beside its grant. */
export interface HoldFacts {
  readonly token: number;
  /** When the server can have begun the lease at the earliest. */
  readonly setAt: Moment;
  /** See `Granted.provisionalMs`. */
  readonly provisionalMs?: number | undefined;
  /** See `Granted.isHandedOver`. */
  readonly isHandedOver?: boolean | undefined;
  readonly options: HoldOptions;
  /** Whether a request of the claim may still be under way, and is to be undone when it arrives. */
  readonly mayStillRun: () => boolean;
  /** Of the claim, if it serves others after this lease. */
  readonly sharedClaim?: SharedClaim | undefined;
}

/**
 * A granted claim, kept alive until it is released or lost.
 *
 * Invariants: only two things are a loss, an answer that says so and the end of validity; a loss is told once;
 * whoever ends it ends its renewer too.
 */
export class Hold implements Occupant, Holding, Kept {
  readonly #session: Session;
  readonly #protocol: LockProtocol;
  readonly #options: HoldOptions;
  #lossListeners: LossListener[] | undefined;
  #lost: LossReason | undefined;
  #forced: Forced | undefined;
  /** Set by `close`, which gives back without being asked: whether the server has answered. */
  #givenBack: Promise<boolean> | undefined;
  /** Set by `finish`: told how it ends. */
  #onSettled: ((how: Settled) => void) | undefined;
  #grant: Grant;
  readonly #renewer: Renewer;
  /** Lost or given up: from then on this object sends nothing by itself. */
  #isOver = false;
  #isAbandoned = false;
  readonly #mayStillRun: () => boolean;
  readonly #sharedClaim: SharedClaim | undefined;
  readonly #isHandedOver: boolean;
  #token: number;

  /** @param grant  as the server has it: of several reserved tokens the last */
  constructor(session: Session, protocol: LockProtocol, grant: Grant, facts: HoldFacts) {
    const { token, setAt, provisionalMs, isHandedOver = false, options, mayStillRun, sharedClaim } = facts;
    this.#sharedClaim = sharedClaim;
    this.#isHandedOver = isHandedOver;
    this.#token = token;
    this.#mayStillRun = mayStillRun;
    this.#grant = grant;
    this.#session = session;
    this.#protocol = protocol;
    this.#options = options;
    const lease = { leaseMs: grant.claim.leaseMs, setAt, provisionalMs, isWatched: sharedClaim !== undefined };
    this.#renewer = new Renewer(session, protocol, options, lease, this);
    session.admit(grant.claim, this);
    this.#renewer.start();
  }

  get heldSinceAtMs(): number {
    return this.#renewer.term.sinceAtMs;
  }

  get kind(): string {
    return this.#protocol.kind;
  }

  get lockName(): string {
    return this.#protocol.name;
  }

  get mode(): "read" | "write" | undefined {
    return this.#protocol.mode;
  }

  /** The key of the lock, the same for whatever means the same lock. */
  get lockKey(): string {
    return this.#protocol.key;
  }

  /** Length of the lease that a renewal asks for, in ms. */
  get leaseMs(): number {
    return this.#renewer.term.leaseMs;
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

  /** From now on it may hold something else than it was granted, and is not put back where a failover has lost it. */
  changes(): void {
    this.#renewer.changes();
  }

  /** The server has changed what this claim holds, as in an upgrade: from now on it goes by the new grant. */
  regranted(token: number): void {
    this.#grant = { ...this.#grant, token };
    this.#token = token;
  }

  onLost(listener: LossListener): void {
    if (this.#lost !== undefined) listener(this.#lost, this.#forced);
    // Most have one: an array that grows would keep room for many.
    else if (this.#lossListeners === undefined) this.#lossListeners = [listener];
    else this.#lossListeners.push(listener);
  }

  validForMs(): number {
    if (this.#isOver) return 0;
    const leftMs = this.#renewer.term.leftMs();
    if (leftMs <= 0) this.lose("expired");
    return leftMs;
  }

  heldMs(): number {
    return this.#renewer.term.heldMs();
  }

  /** @throws StoreError */
  extend(leaseMs: number): Promise<"extended" | NotHeld> {
    return this.#renewer.extend(leaseMs);
  }

  /**
   * Ends the hold in time and without a word to the server: a script has already undone it, or it goes on elsewhere.
   * @param how  as `close` counts it; `"lost"` is in neither of its lists
   */
  end(how: Settled = "lost"): void {
    if (this.#isOver) return;
    this.#stop();
    this.#noteLength();
    this.#forgetCopies();
    this.#sharedClaim?.over();
    this.#onSettled?.(how);
  }

  /**
   * Nothing renews it any more, nor watches its end, while a request that ends it is under way: a renewal would take that for a loss.
   * It can still be extended, if that request hears that it is lost.
   */
  rest(): void {
    this.#renewer.rest();
  }

  /** The holder ends it, in time. A second copy of its grant that comes now must not undo it before what ends it on the server. */
  #forgetCopies(): void {
    this.#session.handedOver(this.#grant.claim, this.#grant.token);
  }

  #stop(): void {
    this.#isOver = true;
    this.#renewer.stop();
    this.#session.dismiss(this.#grant.claim, this);
  }

  /** @param heldMs  how long it was held, where that is known: reading the clock is a part of what a short section takes */
  #noteLength(heldMs?: number): void {
    const { shortHolds } = this.#session;
    const { key } = this.#protocol;
    if (this.#isHandedOver || shortHolds.has(key)) shortHolds.ended(key, heldMs ?? this.heldMs());
  }

  /**
   * Undoes what a request of the claim does that may still be under way. Only for a hold that a script has undone
   * already: whatever this claim has from then on, nobody uses.
   */
  undoLateRequests(): void {
    if (!this.#isUnclear()) return;
    void cleanUp(this.#session, this.#protocol, this.#claimAsExtended(), true, this.#session.commandTimeoutMs);
  }

  /** Ends the hold and tells who listens why, once. */
  lose(reason: LossReason, forced?: Forced): void {
    if (this.#isOver) return;
    this.#stop();
    this.#noteLength();
    this.#lost = reason;
    this.#forced = forced;
    for (const listener of this.#lossListeners ?? []) listener(reason, forced);
    this.#sharedClaim?.over();
    this.#onSettled?.("lost");
  }

  handOver(): ExportedLease {
    const { kind, name, exported } = this.#protocol;
    if (exported === undefined) throw new UnsupportedError(name, `A lease of a ${kind} cannot be exported.`);
    // Whoever adopts it may take as long as the whole lease lasts.
    this.#renewer.confirm();
    const exportedLease = describeExport(
      this.#protocol,
      exported,
      this.#grant,
      this.#token,
      this.#renewer.term,
      this.#options,
    );
    this.end();
    return exportedLease;
  }

  /** As `giveBack`; after `close` it only tells how that ended. */
  async release(): Promise<Ended> {
    // Nobody waits for it any longer, and it ends by itself.
    if (this.#isAbandoned) return "claimed";
    if (this.#givenBack !== undefined) {
      if (await this.#givenBack) return "released";
      // Of a lease that is kept for its work nobody was asked.
      const isAsked = this.#protocol.isKept?.(this.owner) !== true;
      const cause = new Error(`this Holdfast was closed${isAsked ? " while the server did not answer" : ""}`);
      throw new StoreError(this.lockName, { mayHaveRun: isAsked, transient: isAsked, cause });
    }
    const isLate = this.validForMs() <= 0;
    if (!isLate) {
      this.#stop();
      if (this.#sharedClaim?.passOn(this.#renewer.term.longestMs) === true) {
        // A batch goes on for some milliseconds only.
        this.#noteLength(0);
        return "released";
      }
      this.#noteLength();
      this.#forgetCopies();
    }
    const given = {
      session: this.#session,
      protocol: this.#protocol,
      grant: this.#grant,
      claim: this.#claimAsExtended(),
      mayStillRun: () => this.#isUnclear(),
      reclaim: () => this.#renewer.reclaim(this.leaseMs, this.#session.commandTimeoutMs),
    };
    // Sent before the others ask for a claim of their own, so that they need not wait for this one.
    const ending = isLate ? giveBackLate(given) : giveBack(given);
    const onSettled = this.#onSettled;
    if (onSettled !== undefined) {
      ending.then(
        (ended) => onSettled(ended === "released" || ended === "unclaimed" ? "released" : "lost"),
        () => onSettled("unknown"),
      );
    }
    if (!isLate) this.#sharedClaim?.over();
    return ending;
  }

  granted(): void {
    // A second copy of the grant that is held already.
  }

  recheck(): void {
    // Whoever holds is told of what concerns it by the answers to its renewals.
    this.#renewer.check();
  }

  revoked(forced?: Forced): void {
    this.lose("force-released", forced);
  }

  ended(): void {
    this.lose("server-lost");
  }

  reconnected(connection: "commands" | "inbox"): void {
    this.#renewer.renewNow(connection);
  }

  listening(): void {
    // In less nobody has seen it.
    if (this.heldMs() >= 1) this.#renewer.renewNow("inbox");
  }

  /** Whether a request of the claim may still be under way. */
  #isUnclear(): boolean {
    return this.#renewer.mayBePutBack || this.#mayStillRun();
  }

  held(): readonly HeldLease[] {
    const validForMs = this.validForMs();
    if (validForMs <= 0) return [];
    const { kind, lockName: name, token, owner } = this;
    const { label } = parseOwner(owner) ?? {};
    return [{ kind, name, token, owner, label, acquiredAt: new Date(this.heldSinceAtMs), validForMs }];
  }

  finish(): Promise<Settled> {
    return new Promise((resolve) => {
      this.#onSettled = resolve;
      for (const listener of this.#lossListeners ?? []) listener("closing");
      if (this.#sharedClaim === undefined) return;
      // Whoever waits to hold it after this one waits no longer; and the batch confirms it no more.
      this.#sharedClaim.over();
      this.#renewer.check();
    });
  }

  leaveToExpire(): void {
    if (this.#isOver) return;
    this.#isAbandoned = true;
    this.#onSettled?.("unknown");
    this.lose("closed");
  }

  get givenBack(): Promise<boolean> | undefined {
    return this.#givenBack;
  }

  async close(): Promise<void> {
    if (this.#isOver) return;
    this.lose("closed");
    if (this.#protocol.isKept?.(this.owner) === true) {
      this.#givenBack = Promise.resolve(false);
      return;
    }
    this.#givenBack = cleanUp(
      this.#session,
      this.#protocol,
      this.#claimAsExtended(),
      false,
      this.#session.commandTimeoutMs,
    );
    await this.#givenBack;
  }

  /** For the cleanup, which goes on for as long as the lease on the server may last. */
  #claimAsExtended(): Claim {
    const { claim } = this.#grant;
    const { longestMs } = this.#renewer.term;
    if (longestMs <= claim.leaseMs) return claim;
    return { ...claim, owner: claim.owner, leaseMs: longestMs };
  }
}

// --- What becomes of a grant: a hold, and a word to who listens.

/**
 * Keeps a grant alive.
 *
 * @param token  of this lease, if that is not the last that the grant has reserved
 * @param sharedClaim  the claim, if it serves others after this lease
 */
export function hold(
  session: Session,
  protocol: LockProtocol,
  granted: Granted,
  options: HoldOptions,
  token: number = granted.token,
  sharedClaim?: SharedClaim,
): Hold {
  if (channels.grant.hasSubscribers) {
    const { claim, waitedMs, call } = granted;
    const { kind, exported, permits: limit } = protocol;
    // Without the name of the property where there is none: most locks have no key of their own.
    const mapped = exported?.key === undefined ? {} : { key: exported.key };
    // A read-write lock is made of permits too, of which nobody is told.
    const counted = limit === undefined || kind !== "semaphore" ? {} : { permits: { taken: claim.amount, limit } };
    const event: GrantEvent = { ...aboutLock(protocol, claim.owner), call, token, waitedMs, ...mapped, ...counted };
    channels.grant.publish(event);
  }
  const { claim, token: lastToken, slots, setAt, provisionalMs, isHandedOver, mayStillRun } = granted;
  const facts = { token, setAt, provisionalMs, isHandedOver, options, mayStillRun, sharedClaim };
  return new Hold(session, protocol, { claim, token: lastToken, slots }, facts);
}

/** What a hold is, if its claim serves several leases in turn: see local-queue.ts. */
export interface SharedClaim {
  /**
   * The lease was given back while it was good.
   *
   * @param longestMs  the longest lease that the server was asked for meanwhile; 0 if nothing was asked
   * @returns whether the next lease has begun on the claim, so that it must not be given back
   */
  passOn(longestMs: number): boolean;

  /** The claim is given back, lost, or somebody else's: whoever still waits for it here needs another one. */
  over(): void;
}

/**
 * Keeps a granted claim alive until it is released or lost.
 */

import type { HeldLease, Settled } from "./closing.js";
import { type Forced, type LossReason, StoreError, UnsupportedError } from "./errors.js";
import { aboutLock, channels, type GrantEvent } from "./events.js";
import { describeExport, type Ended, type ExportedLease, type Holding, type LossListener } from "./lease.js";
import {
  type Claim,
  type Grant,
  type Granted,
  type LockProtocol,
  NOTHING_RUNS,
  type NotHeld,
  parseOwner,
} from "./protocol.js";
import { cleanUp, giveBack, giveBackLate } from "./release.js";
import { type HoldOptions, type RenewedHold, Renewer } from "./renewer.js";
import type { Occupant, Session } from "./session.js";
import type { Moment } from "./time.js";

/** The facts about a hold, apart from its grant. */
export interface HoldFacts {
  readonly token: number;
  /** Earliest moment at which the server could have begun the lease. */
  readonly setAt: Moment;
  /** See `Granted.provisionalMs`. */
  readonly provisionalMs?: number | undefined;
  /** See `Granted.isHandedOver`. */
  readonly isHandedOver?: boolean | undefined;
  readonly options: HoldOptions;
  /** Returns whether a request of the claim may still be under way. If so, its effect must be undone once it runs. */
  readonly mayStillRun: () => boolean;
  /** The claim, if it serves other callers after this lease. */
  readonly sharedClaim?: SharedClaim | undefined;
  /**
   * When the hold begins, if the clocks were just read. For short work, reading them again would cost noticeable time.
   */
  readonly heldFrom?: Moment | undefined;
}

/**
 * A granted claim, kept alive until it is released or lost.
 *
 * Invariants:
 * - Apart from `maxHoldMs` and `close`, the hold is lost only if a reply or message says so, or if its validity ends.
 * - Listeners are notified of a loss once.
 * - Ending the hold also ends its renewer.
 */
export class Hold implements Occupant, Holding, RenewedHold {
  readonly #session: Session;
  readonly #protocol: LockProtocol;
  readonly #options: HoldOptions;
  #lossListeners: LossListener[] | undefined;
  #lost: LossReason | undefined;
  #forced: Forced | undefined;
  /** Set by `close`, which releases the lock itself. Resolves to whether the server replied to that release. */
  #givenBack: Promise<boolean> | undefined;
  /** Set by `finish`. Called with how the hold ended. */
  #onSettled: ((how: Settled) => void) | undefined;
  #grant: Grant;
  readonly #renewer: Renewer;
  /** True once the hold is lost or its holder has ended it. From then on, this object sends nothing on its own. */
  #isOver = false;
  #isAbandoned = false;
  readonly #mayStillRun: () => boolean;
  readonly #sharedClaim: SharedClaim | undefined;
  readonly #isHandedOver: boolean;
  #token: number;

  /** @param grant  as the server stores it: with the last of the reserved tokens */
  constructor(session: Session, protocol: LockProtocol, grant: Grant, facts: HoldFacts) {
    const { token, setAt, provisionalMs, isHandedOver = false, options, mayStillRun, sharedClaim, heldFrom } = facts;
    this.#sharedClaim = sharedClaim;
    this.#isHandedOver = isHandedOver;
    this.#token = token;
    this.#mayStillRun = mayStillRun;
    this.#grant = grant;
    this.#session = session;
    this.#protocol = protocol;
    this.#options = options;
    const lease = {
      leaseMs: grant.claim.leaseMs,
      setAt,
      provisionalMs,
      isWatched: sharedClaim !== undefined,
      heldFrom,
    };
    this.#renewer = new Renewer(session, protocol, options, lease, this);
    session.admit(grant.claim, this);
    this.#renewer.start();
  }

  get heldSinceAtMs(): number {
    return this.#renewer.validity.sinceAtMs;
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

  /** Key of the lock. Two lock objects for the same lock have the same key. */
  get lockKey(): string {
    return this.#protocol.key;
  }

  /** Length of the lease that a renewal asks for, in ms. */
  get leaseMs(): number {
    return this.#renewer.validity.leaseMs;
  }

  /** The options of the acquire that control how the hold is kept alive. */
  get options(): HoldOptions {
    return this.#options;
  }

  /**
   * The grant that the server compares with each request. It changes only if the server changes what the claim holds,
   * as in an upgrade.
   */
  get grant(): Grant {
    return this.#grant;
  }

  get owner(): string {
    return this.#grant.claim.owner;
  }

  get token(): number {
    return this.#token;
  }

  /**
   * Called before a request that may make the hold differ from its grant, such as an upgrade. After that, the hold is
   * not restored if a failover loses it.
   */
  changes(): void {
    this.#renewer.changes();
  }

  /** Called after the server has changed what this claim holds, as in an upgrade. The hold then uses the new token. */
  regranted(token: number): void {
    this.#grant = { ...this.#grant, token };
    this.#token = token;
  }

  onLost(listener: LossListener): void {
    if (this.#lost !== undefined) listener(this.#lost, this.#forced);
    // Most holds have one listener, so create the array with it. Adding it to an empty array would reserve more memory.
    else if (this.#lossListeners === undefined) this.#lossListeners = [listener];
    else this.#lossListeners.push(listener);
  }

  validForMs(): number {
    if (this.#isOver) return 0;
    const leftMs = this.#renewer.validity.leftMs();
    if (leftMs <= 0) this.lose("expired");
    return leftMs;
  }

  heldMs(): number {
    return this.#renewer.validity.heldMs();
  }

  /** @throws StoreError */
  extend(leaseMs: number): Promise<"extended" | NotHeld> {
    return this.#renewer.extend(leaseMs);
  }

  /**
   * Ends a valid hold without a request, because a script has already undone it or another process continues it.
   * @param how  how `close` reports the hold; with `"lost"`, the hold is in neither list of `CloseOutcome`
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
   * Called before a request that ends the hold. Stops the renewals and the expiry checks, because a renewal after that
   * request would report a loss. If the request shows that the server lost the hold, `extend` can still restore it.
   */
  rest(): void {
    this.#renewer.rest();
  }

  /**
   * Called when the holder ends a valid hold. After that, a late second copy of the grant's message does not cause a
   * release.
   */
  #forgetCopies(): void {
    this.#session.handedOver(this.#grant.claim, this.#grant.token);
  }

  #stop(): void {
    this.#isOver = true;
    this.#renewer.stop();
    this.#session.dismiss(this.#grant.claim, this);
  }

  /** @param heldMs  time held, in ms, if known. For short work, reading the clock again would cost noticeable time. */
  #noteLength(heldMs?: number): void {
    const { shortHolds } = this.#session;
    const { key } = this.#protocol;
    if (this.#isHandedOver || shortHolds.has(key)) shortHolds.ended(key, heldMs ?? this.heldMs());
  }

  /**
   * Undoes the effects of requests of the claim that may still be under way. Call this only after a script has undone
   * the hold, because until then a caller may use a grant that such a request causes.
   */
  undoLateRequests(): void {
    if (!this.#isUnclear()) return;
    void cleanUp(this.#session, this.#protocol, this.#claimAsExtended(), true);
  }

  /** Ends the hold and notifies the loss listeners of the reason, once. */
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
    // The other process may take up to a full lease length to adopt the lease, so confirm a provisional grant now.
    this.#renewer.confirm();
    const exportedLease = describeExport(
      this.#protocol,
      exported,
      this.#grant,
      this.#token,
      this.#renewer.validity,
      this.#options,
    );
    this.end();
    return exportedLease;
  }

  /** Releases the lock. After `close`, which releases the lock itself, only reports the outcome. */
  async release(isValid: boolean = this.validForMs() > 0): Promise<Ended> {
    // `close` has stopped waiting for this hold and left the lease to expire.
    if (this.#isAbandoned) return "claimed";
    if (this.#givenBack !== undefined) {
      if (await this.#givenBack) return "released";
      // For a lease that is kept until its work ends, `close` sent no request.
      const isAsked = this.#protocol.isKept?.(this.owner) !== true;
      const cause = new Error(`this Holdfast was closed${isAsked ? " before the server replied" : ""}`);
      throw new StoreError(this.lockName, { mayHaveRun: isAsked, transient: isAsked, cause });
    }
    const isLate = !isValid;
    if (!isLate) {
      this.#stop();
      if (this.#sharedClaim?.passOn(this.#renewer.validity.longestMs) === true) {
        // A batch lasts only a few milliseconds, so this hold counts as short.
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
      // If the lock has been contended, release it with the script, which hands it to a waiter in the same step.
      isPlain:
        this.#mayStillRun === NOTHING_RUNS && !this.#isHandedOver && !this.#session.shortHolds.has(this.#protocol.key),
      mayStillRun: () => this.#isUnclear(),
      reclaim: () => this.#renewer.reclaim(this.leaseMs, this.#session.commandTimeoutMs),
    };
    // Send this request before the other callers request a new claim. Otherwise, the new claim would queue behind the
    // one that is being released.
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
    // Nothing to do: this message is a second copy of a grant that is already held.
  }

  recheck(): void {
    // If the server only asks this process to release a shared claim soon, no check is needed. Otherwise, the reply to
    // a renewal shows what has changed.
    if (this.#sharedClaim?.recalled?.() !== true) this.#renewer.check();
  }

  revoked(forced?: Forced): void {
    this.lose("force-released", forced);
  }

  ended(): void {
    // If the lease has expired, for example while the host was suspended, `validForMs` reports that loss instead.
    if (this.validForMs() > 0) this.lose("server-lost");
  }

  reconnected(connection: "commands" | "inbox"): void {
    this.#renewer.renewNow(connection);
  }

  listening(): void {
    // If the lock was force-released before the subscription, the message was missed. Renew to find out, however young
    // the hold is.
    if (this.heldMs() > 0) this.#renewer.renewNow("inbox");
  }

  /** Whether a request of the claim may still be running. */
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
      // The remaining callers of the batch stop waiting for this claim. The batch no longer confirms the claim, so let
      // the renewer confirm it.
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
    this.#givenBack = cleanUp(this.#session, this.#protocol, this.#claimAsExtended(), false);
    await this.#givenBack;
  }

  /**
   * The claim with its longest lease, because the cleanup continues for as long as the lease on the server may last.
   */
  #claimAsExtended(): Claim {
    const { claim } = this.#grant;
    const { longestMs } = this.#renewer.validity;
    if (longestMs <= claim.leaseMs) return claim;
    return { ...claim, owner: claim.owner, leaseMs: longestMs };
  }
}

/**
 * Creates a hold, which keeps the grant alive, and publishes the grant event.
 *
 * @param token  fencing token of this lease, if it is not the last one that the grant has reserved
 * @param sharedClaim  the claim, if it serves other callers after this lease
 * @param heldFrom     see `HoldFacts.heldFrom`
 */
export function hold(
  session: Session,
  protocol: LockProtocol,
  granted: Granted,
  options: HoldOptions,
  token: number = granted.token,
  sharedClaim?: SharedClaim,
  heldFrom?: Moment,
): Hold {
  if (channels.grant.hasSubscribers) {
    const { claim, waitedMs, call } = granted;
    const { kind, exported, permits: limit } = protocol;
    // Omit the property if the lock has no `key` option, because most locks have none.
    const mapped = exported?.key === undefined ? {} : { key: exported.key };
    // A read-write lock also uses permits, but its events do not show them.
    const counted = limit === undefined || kind !== "semaphore" ? {} : { permits: { taken: claim.amount, limit } };
    const event: GrantEvent = { ...aboutLock(protocol, claim.owner), call, token, waitedMs, ...mapped, ...counted };
    channels.grant.publish(event);
  }
  const { claim, token: lastToken, slots, setAt, provisionalMs, isHandedOver, mayStillRun } = granted;
  const facts = { token, setAt, provisionalMs, isHandedOver, options, mayStillRun, sharedClaim, heldFrom };
  return new Hold(session, protocol, { claim, token: lastToken, slots }, facts);
}

/** A claim that serves several leases, one after the other: see local-queue.ts. */
export interface SharedClaim {
  /**
   * Called when a lease is released while it is still valid.
   *
   * @param longestMs  the longest lease in ms that the server was asked for during the hold; 0 if it was not asked
   * @returns true if the next lease has begun on the claim, so the claim must not be released
   */
  passOn(longestMs: number): boolean;

  /**
   * Called when the server asks this process to release the lock soon, because another claim is waiting for it.
   *
   * @returns true if the message shows that the claim still holds the lock, so the hold need not check
   */
  recalled?(): boolean;

  /**
   * Called when the claim has been released, lost, or handed over to another process. Callers that are still waiting
   * for it need another claim.
   */
  over(): void;
}

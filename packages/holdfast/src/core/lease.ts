/**
 * What a caller holds. Everything about keeping it is in hold.ts; this is the caller's view.
 */
import type { Forced, LossReason, OverReason } from "./error-messages.js";
import { LeaseLostError } from "./errors.js";
import { aboutLock, channels, type LockEvent, type LostEvent, type ReleaseEvent } from "./events.js";
import { checkLeaseMs } from "./options.js";
import type { Grant, LockProtocol, NotHeld } from "./protocol.js";
import type { Term } from "./time.js";

// --- What a caller holds. Everything about keeping it is in hold.ts; this is the caller's view.

/** How a lease ended: given back in time, or over already but without harm, since nobody was granted since. */
export type ReleaseOutcome = "released" | "expired-unclaimed";

/**
 * A lock held for a time: the only thing that can be extended or released.
 *
 * Dispose it, or call `release`, when the work is done. If neither happens it is renewed for as long as the
 * process lives and uses it; when the process dies, the server ends it by itself after `leaseMs`.
 */
export class Lease implements AsyncDisposable {
  /** Name of the lock. */
  readonly name: string;
  readonly #holding: Holding;
  readonly #give: (() => Promise<Ended>) | undefined;
  #over: OverReason | undefined;
  #lost: LeaseLostError | undefined;
  /** What the signal aborts for, which may come before the loss. */
  #aborted: LeaseLostError | undefined;
  #controller: AbortController | undefined;
  #release: Promise<ReleaseOutcome> | undefined;

  /**
   * Leases come from `acquire`, `tryAcquire`, `run` and `adopt`.
   * @param give  how to give it back, if that is not simply to release the holding
   * @internal
   */
  constructor(holding: Holding, give?: () => Promise<Ended>) {
    this.name = holding.lockName;
    this.#holding = holding;
    this.#give = give;
    holding.onLost((reason, forced) => this.#lose(reason, forced));
  }

  /** Time of the grant as this process saw it. */
  get acquiredAt(): Date {
    return new Date(this.#holding.heldSinceAtMs);
  }

  /** Fencing token: a safe integer, higher than that of every earlier grant of the same name. */
  get token(): number {
    return this.#holding.token;
  }

  /** Id of the claim behind this lease; how the server and `inspect` name the holder. */
  get owner(): string {
    return this.#holding.owner;
  }

  /**
   * Aborts once, with a LeaseLostError as its reason, when the lease is lost: when `validForMs` becomes 0, which is
   * before the server can grant somebody else. Where this process was paused it cannot abort before it runs again, and
   * where its host was suspended or its wall clock was set forward, it aborts at the latest 1 s after the process runs
   * on, and as much later as timers are late. `assertHeld` and `validForMs` tell the truth at once, and make it abort.
   * Not aborted by `release`. With the reason `closing` nothing is lost yet: this Holdfast closes, and waits for a while for
   * the work to end.
   */
  get signal(): AbortSignal {
    // Made on demand: a signal costs more than the rest of an acquire on some runtimes.
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#aborted !== undefined) this.#controller.abort(this.#aborted);
    }
    return this.#controller.signal;
  }

  /**
   * How long the holder may rely on the lease from now, in ms, by the monotonic and the wall clock, whichever
   * says less; 0 when it is over. True at the first line after a pause, before any timer has run.
   */
  validForMs(): number {
    return this.#over === undefined ? this.#holding.validForMs() : 0;
  }

  /** @throws LeaseLostError  the lease is over, and somebody else may hold the lock */
  assertHeld(): void {
    if (this.validForMs() <= 0) throw this.#lost ?? this.#error(this.#over ?? "released");
  }

  /**
   * Begins the lease anew: it lasts at least `leaseMs` from now, and later renewals keep that length.
   *
   * @param leaseMs  whole milliseconds, 100 to 31 536 000 000
   * @throws LeaseLostError  it is over; somebody else may hold the lock
   * @throws StoreError      outcome unknown; count on the old end of the lease
   */
  async extend(leaseMs: number): Promise<void> {
    checkLeaseMs(leaseMs);
    this.assertHeld();
    const outcome = await this.#holding.extend(leaseMs);
    if (outcome !== "extended") throw this.#lost ?? this.#error(this.#over ?? "expired");
    // It may have ended here while the answer was on its way; its holder has been told so, and that stands.
    this.assertHeld();
  }

  /**
   * Gives the lock to the next waiter. Calling it again returns the first outcome. Where the next caller of a shared claim
   * takes over, nobody is asked: it was in time as far as this process has heard.
   *
   * @returns `"released"`; or `"expired-unclaimed"` if it had ended but nobody was granted since, so that no
   *          harm was done
   * @throws LeaseLostError  it had ended; the work may have overlapped with another holder's
   * @throws StoreError      outcome unknown; the lease ends by itself after `leaseMs` at the latest
   */
  release(): Promise<ReleaseOutcome> {
    this.#release ??= this.#releaseOnce();
    return this.#release;
  }

  /** As `release`, but never rejects: what went wrong must not hide an error of the block that ends. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.release().catch(() => {});
  }

  /**
   * Ends this lease here and describes it as plain JSON, so that `holdfast.adopt` can go on with it in another
   * process, with the same token. Nobody renews it until then.
   *
   * @throws LeaseLostError    it is over
   * @throws UnsupportedError  leases of this kind cannot move
   */
  export(): ExportedLease {
    this.assertHeld();
    const exported = this.#holding.handOver();
    this.end("handed-over");
    return exported;
  }

  /** What a lease stands on, for kinds that do more with it than a caller may. @internal */
  static holdingOf(lease: Lease): Holding {
    return lease.#holding;
  }

  /**
   * Ends this view of the holding without giving anything back, as when a script has already done so.
   * @param outcome  as it is told, if it is not the same
   * @internal
   */
  end(over: "released" | "handed-over", outcome: ReleaseEvent["outcome"] = over): void {
    if (this.#over === undefined) this.#publishRelease(outcome);
    this.#over ??= over;
    this.#release ??= Promise.resolve("released");
  }

  async #releaseOnce(): Promise<ReleaseOutcome> {
    const wasValid = this.validForMs() > 0;
    this.#over ??= "released";
    let outcome: ReleaseEvent["outcome"] = "unknown";
    try {
      const ended = await (this.#give === undefined ? this.#holding.release() : this.#give());
      outcome = ended === "released" ? "released" : ended === "unclaimed" ? "expired-unclaimed" : "lost";
      if (outcome !== "lost") return outcome;
      throw this.#lost ?? this.#error(wasValid ? "server-lost" : "expired");
    } finally {
      this.#publishRelease(outcome);
    }
  }

  #lose(reason: LossReason, forced?: Forced): void {
    if (this.#over !== undefined) return;
    const error = this.#error(reason, forced);
    this.#aborted ??= error;
    if (reason === "closing") {
      this.#controller?.abort(error);
      return;
    }
    this.#over = reason;
    this.#lost = error;
    if (channels.lost.hasSubscribers) {
      const event: LostEvent = { ...this.#about(), reason, forced };
      channels.lost.publish(event);
    }
    this.#controller?.abort(error);
  }

  #error(reason: OverReason, forced?: Forced): LeaseLostError {
    return new LeaseLostError(this.name, { reason, forced, token: this.token, owner: this.owner });
  }

  #publishRelease(outcome: ReleaseEvent["outcome"]): void {
    if (!channels.release.hasSubscribers) return;
    const event: ReleaseEvent = { ...this.#about(), outcome, heldMs: this.#holding.heldMs() };
    channels.release.publish(event);
  }

  #about(): LockEvent & { readonly token: number } {
    const { kind, mode } = this.#holding;
    return { ...aboutLock({ kind, name: this.name, mode }, this.owner), token: this.token };
  }
}

/** How a release ended, as the server tells it. */
export type Ended = "released" | NotHeld;

/**
 * What a lease stands on: a hold of one claim, or several holds that count as one. It keeps itself alive until
 * it is released, ended or lost.
 */
export interface Holding {
  readonly kind: string;
  readonly lockName: string;
  /** Of a read-write lock: the side that was asked for. */
  readonly mode?: "read" | "write" | undefined;
  readonly owner: string;
  readonly token: number;
  /** Time of the grant by this process's wall clock, in ms since 1970. */
  readonly heldSinceAtMs: number;
  /** Length of the lease that a renewal asks for, in ms. */
  readonly leaseMs: number;

  /** How long it may be trusted from now, in ms; 0 when it is over. Notices the end by itself. */
  validForMs(): number;

  /** How long it has been held, in ms. */
  heldMs(): number;

  /** Begins the lease anew with another length, which later renewals keep. @throws StoreError */
  extend(leaseMs: number): Promise<"extended" | NotHeld>;

  /** Gives the lock back. @throws StoreError */
  release(): Promise<Ended>;

  /** Ends it without a word to the server, and describes it, so that it can go on elsewhere. @throws UnsupportedError */
  handOver(): ExportedLease;

  /** Calls `listener` once when it is lost, or at once if it was lost before. */
  onLost(listener: LossListener): void;
}

/** Told once, with what was said if it was lost by force; and before, of `closing`, when it is not lost but to end soon. */
export type LossListener = (reason: LossReason, forced?: Forced) => void;

/** A lease as plain JSON, for `holdfast.adopt` in another process. */
export interface ExportedLease {
  readonly version: 1;
  readonly kind: string;
  readonly name: string;
  /** The `key` option of the lock, if it had one. */
  readonly key?: string | undefined;
  readonly owner: string;
  readonly token: number;
  /** The last of the tokens that its claim has reserved; absent if that is `token`. */
  readonly reservedTo?: number | undefined;
  readonly leaseMs: number;
  readonly renew: boolean;
  /** What is left of `maxHoldMs`; absent if there is none. */
  readonly maxHoldMs?: number | undefined;
  /** Numbers of the permits held; absent for kinds that do not number them. */
  readonly slots?: readonly number[] | undefined;
  /** What a leader stands for; absent for all other kinds. */
  readonly value?: string | undefined;
  /** Which side of a read-write lock it holds; absent for other kinds. */
  readonly mode?: "read" | "write" | undefined;
}

// --- A hold as plain JSON, for `holdfast.adopt` in another process.

/**
 * What another process needs to go on with a hold.
 *
 * @param exported  how its lock is found again
 * @param token     of the lease itself; the grant has that which the server compares
 */
export function describeExport(
  { kind, name }: LockProtocol,
  exported: NonNullable<LockProtocol["exported"]>,
  { claim: { owner }, token: reservedTo, slots }: Grant,
  token: number,
  term: Term,
  { renew, maxHoldMs }: { readonly renew: boolean; readonly maxHoldMs: number },
): ExportedLease {
  const restMs = maxHoldMs - term.heldMs();
  return {
    version: 1,
    kind,
    name,
    ...exported,
    owner,
    token,
    ...(reservedTo === token ? {} : { reservedTo }),
    leaseMs: term.leaseMs,
    renew,
    ...(maxHoldMs === Infinity ? {} : { maxHoldMs: Math.max(1, Math.ceil(restMs)) }),
    ...(slots.length === 0 ? {} : { slots }),
  };
}

/**
 * Asks for what only the holder of a lease may do. If the server says that it does not hold, a failover may have lost the lease:
 * then it is begun anew, which puts it back where it can be put back, and the server is asked once more.
 *
 * @param ask        sent twice it counts once, as far as the server knows the holder
 * @param isRefused  whether that answer says that the lease is not held
 * @returns the last answer; after a refusal the lease is held all the same, so that a second one has another cause
 * @throws LeaseLostError  it is over, and cannot be put back
 * @throws StoreError      of `ask`; or it is not known whether the lease was put back, and nothing was done
 */
export async function askAsHolder<Answer>(
  lease: Lease,
  ask: () => Promise<Answer>,
  isRefused: (answer: Answer) => boolean,
): Promise<Answer> {
  const answer = await ask();
  if (!isRefused(answer)) return answer;
  await lease.extend(Lease.holdingOf(lease).leaseMs);
  return ask();
}

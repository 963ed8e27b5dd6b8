/**
 * Several leases that act as one.
 *
 * Invariants: the combined lease is valid only while each member is valid. As soon as a member is lost, the combined
 * lease is lost, the loss is reported once, and the other members are released, because work that needs all members
 * must stop.
 */
import { type Forced, LeaseLostError, type LossReason, UnsupportedError } from "../core/errors.js";
import type { Ended, ExportedLease, Holding, LossListener } from "../core/lease.js";
import { Lease, type ReleaseOutcome } from "../core/lease.js";
import type { NotHeld } from "../core/protocol.js";
import type { Runtime } from "../core/runtime.js";

/** The holding behind a multi-lock's lease. It combines the leases of the members. */
export class MultiHold implements Holding {
  readonly kind = "multi-lock";
  readonly lockName: string;
  readonly heldSinceAtMs: number;
  readonly #leases: readonly Lease[];
  readonly #runtime: Runtime;
  readonly #heldAtMs: number;
  readonly #lossListeners: LossListener[] = [];
  #isOver = false;
  #lostFor: LossReason | undefined;
  #forced: Forced | undefined;

  /** @param leases  one for each member, at least one */
  constructor(lockName: string, leases: readonly Lease[], runtime: Runtime) {
    this.lockName = lockName;
    this.#leases = leases;
    this.#runtime = runtime;
    this.heldSinceAtMs = runtime.wallMs();
    this.#heldAtMs = runtime.monotonicMs();
    for (const lease of leases) Lease.holdingOf(lease).onLost((...loss) => this.#memberLost(lease, ...loss));
  }

  get token(): number {
    return this.#highest.token;
  }

  get owner(): string {
    return this.#highest.owner;
  }

  get leaseMs(): number {
    return Math.max(...this.#leases.map((lease) => Lease.holdingOf(lease).leaseMs));
  }

  validForMs(): number {
    return this.#lostFor !== undefined ? 0 : Math.min(...this.#leases.map((lease) => lease.validForMs()));
  }

  heldMs(): number {
    return this.#runtime.monotonicMs() - this.#heldAtMs;
  }

  /**
   * If the outcome for a member is uncertain, its lease keeps its previous end, so the combined lease ends by then.
   */
  async extend(leaseMs: number): Promise<"extended" | NotHeld> {
    const ends = await Promise.allSettled(this.#leases.map((lease) => lease.extend(leaseMs)));
    return lossIn(ends) ?? "extended";
  }

  /** Releases all members, even if some releases fail. Returns the worst outcome. */
  async release(): Promise<Ended> {
    this.#isOver = true;
    const ends = await Promise.allSettled(this.#leases.map((lease) => lease.release()));
    const loss = lossIn(ends);
    if (loss !== undefined) return loss;
    // Members that were released early, because another member was lost, may have been granted to others since.
    const isEarly = this.#lostFor !== undefined && this.#lostFor !== "closed";
    if (isEarly && this.#leases.length > 1) return "claimed";
    const isUnclaimed = ends.some((end) => end.status === "fulfilled" && end.value === "expired-unclaimed");
    return isUnclaimed ? "unclaimed" : "released";
  }

  handOver(): ExportedLease {
    throw new UnsupportedError(this.lockName, "A lease of a multi-lock cannot be exported.");
  }

  onLost(listener: LossListener): void {
    if (this.#lostFor === undefined) this.#lossListeners.push(listener);
    else listener(this.#lostFor, this.#forced);
  }

  /** The lease with the highest token. Not cached, because leases of some kinds can change their token. */
  get #highest(): Lease {
    return this.#leases.reduce((a, b) => (b.token > a.token ? b : a));
  }

  #memberLost(member: Lease, reason: LossReason, forced?: Forced): void {
    if (this.#isOver || this.#lostFor !== undefined) return;
    if (reason === "closing") {
      for (const listener of this.#lossListeners) listener(reason);
      return;
    }
    this.#lostFor = reason;
    this.#forced = forced;
    // On close, the Holdfast instance releases all members itself and waits for the releases.
    if (reason !== "closed") void releaseAll(this.#leases.filter((lease) => lease !== member));
    for (const listener of this.#lossListeners) listener(reason, forced);
  }
}

/**
 * Releases all leases and resolves to the outcomes. Each failed release is retried in the background. Never rejects.
 */
export function releaseAll(leases: readonly Lease[]): Promise<readonly PromiseSettledResult<ReleaseOutcome>[]> {
  return Promise.allSettled(leases.map((lease) => lease.release()));
}

/** Returns how the first lost member ended; undefined if all succeeded. @throws the first other failure */
function lossIn(ends: readonly PromiseSettledResult<unknown>[]): NotHeld | undefined {
  const failures: unknown[] = ends.flatMap((end) => (end.status === "rejected" ? [end.reason] : []));
  const lost = failures.find((error) => error instanceof LeaseLostError);
  if (lost !== undefined) return lost.reason === "server-lost" ? "forgotten" : "claimed";
  if (failures.length > 0) throw failures[0];
  return undefined;
}

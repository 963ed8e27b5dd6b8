/**
 * A hold on the server that several leases share, one for each time that the hold was entered.
 *
 * Invariants:
 * - The hold is acquired from the server once, and released once, when the last lease ends.
 * - No lease ends twice.
 * - A lost hold cannot be entered, and all its leases are notified of the loss.
 */
import { type Forced, LeaseLostError, type LossReason, UnsupportedError } from "../core/errors.js";
import type { Hold } from "../core/hold.js";
import type { Ended, ExportedLease, Holding, LossListener } from "../core/lease.js";
import type { NotHeld } from "../core/protocol.js";

/** The hold that several leases of a reentrant mutex share. */
export class SharedHold {
  /** An object that all holds of one Holdfast instance share. Used to detect leases of other instances. */
  readonly home: object;
  readonly hold: Hold;
  readonly #entries = new Set<Entry>();
  #lostFor: LossReason | undefined;
  #forced: Forced | undefined;
  #ended: Promise<Ended> | undefined;

  constructor(home: object, hold: Hold) {
    this.home = home;
    this.hold = hold;
    hold.onLost((reason, forced) => {
      if (reason !== "closing") {
        this.#lostFor = reason;
        this.#forced = forced;
      }
      for (const entry of this.#entries) entry.lose(reason, forced);
    });
  }

  /** Why the hold was lost; undefined if it was not. */
  get lostFor(): LossReason | undefined {
    return this.#lostFor;
  }

  /** Details of the force-release, if that ended the hold. */
  get forced(): Forced | undefined {
    return this.#forced;
  }

  /** The number of unreleased leases, whether or not the hold was lost. */
  get count(): number {
    return this.#entries.size;
  }

  /** @throws LeaseLostError  the hold was lost; another owner may hold the lock */
  assertHeld(): void {
    if (this.hold.validForMs() > 0) return;
    const { lockName, token, owner } = this.hold;
    throw new LeaseLostError(lockName, { reason: this.#lostFor ?? "expired", token, owner });
  }

  /** Adds a lease to the hold. */
  enter(): Entry {
    const entry = new Entry(this);
    this.#entries.add(entry);
    return entry;
  }

  /**
   * Ends one lease. Ending the last one also releases the hold. A lost hold is released when the first of its leases
   * ends, and all its leases share the outcome.
   */
  leave(entry: Entry): Promise<Ended> {
    this.#entries.delete(entry);
    if (this.#entries.size > 0 && this.hold.validForMs() > 0) return Promise.resolve("released");
    this.#ended ??= this.hold.release();
    return this.#ended;
  }

  /** @throws UnsupportedError  other leases share the hold, and they cannot move with it */
  handOver(): ExportedLease {
    if (this.#entries.size > 1) {
      const message = `A lease of a reentrant mutex cannot be exported while ${this.#entries.size} leases share its hold.`;
      throw new UnsupportedError(this.hold.lockName, message);
    }
    const exported = this.hold.handOver();
    this.#entries.clear();
    return exported;
  }
}

/** One lease's share of a hold. */
export class Entry implements Holding {
  readonly shared: SharedHold;
  #onLost: LossListener | undefined;

  /** Call this only from `SharedHold.enter`. */
  constructor(shared: SharedHold) {
    this.shared = shared;
  }

  get kind(): string {
    return this.shared.hold.kind;
  }

  get lockName(): string {
    return this.shared.hold.lockName;
  }

  get owner(): string {
    return this.shared.hold.owner;
  }

  get token(): number {
    return this.shared.hold.token;
  }

  get heldSinceAtMs(): number {
    return this.shared.hold.heldSinceAtMs;
  }

  get leaseMs(): number {
    return this.shared.hold.leaseMs;
  }

  validForMs(): number {
    return this.shared.hold.validForMs();
  }

  heldMs(): number {
    return this.shared.hold.heldMs();
  }

  /** Never shortens a hold that other leases share. */
  extend(leaseMs: number): Promise<"extended" | NotHeld> {
    const { hold, count } = this.shared;
    return hold.extend(count > 1 ? Math.max(leaseMs, hold.leaseMs) : leaseMs);
  }

  release(): Promise<Ended> {
    return this.shared.leave(this);
  }

  handOver(): ExportedLease {
    return this.shared.handOver();
  }

  onLost(listener: LossListener): void {
    const { lostFor, forced } = this.shared;
    if (lostFor === undefined) this.#onLost = listener;
    else listener(lostFor, forced);
  }

  /** Called when the hold is lost. */
  lose(reason: LossReason, forced?: Forced): void {
    this.#onLost?.(reason, forced);
  }
}

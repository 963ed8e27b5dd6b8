/**
 * One hold on the server, under as many leases as it was entered.
 *
 * Invariants: the server is asked for the hold once and gets it back once, when the last lease ends; no lease
 * ends twice; a hold that was lost is entered by nobody, and all its leases are told.
 */
import { type Forced, LeaseLostError, type LossReason, UnsupportedError } from "../core/errors.js";
import type { Hold } from "../core/hold.js";
import type { Ended, ExportedLease, Holding, LossListener } from "../core/lease.js";
import type { NotHeld } from "../core/protocol.js";

/** See the file header. */
export class SharedHold {
  /** One object for all holds of a Holdfast: leases of another one are strangers. */
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

  /** Why it was lost; undefined if it was not. */
  get lostFor(): LossReason | undefined {
    return this.#lostFor;
  }

  /** What was said, if it was lost by force. */
  get forced(): Forced | undefined {
    return this.#forced;
  }

  /** How many leases stand on it that were not released, whether or not it was lost. */
  get count(): number {
    return this.#entries.size;
  }

  /** @throws LeaseLostError  it was lost, and somebody else may hold the lock */
  assertHeld(): void {
    if (this.hold.validForMs() > 0) return;
    const { lockName, token, owner } = this.hold;
    throw new LeaseLostError(lockName, { reason: this.#lostFor ?? "expired", token, owner });
  }

  /** What one more lease stands on. */
  enter(): Entry {
    const entry = new Entry(this);
    this.#entries.add(entry);
    return entry;
  }

  /** One lease ends, and with the last one the hold. A hold that was lost is asked about once, for all of them. */
  leave(entry: Entry): Promise<Ended> {
    this.#entries.delete(entry);
    if (this.#entries.size > 0 && this.hold.validForMs() > 0) return Promise.resolve("released");
    this.#ended ??= this.hold.release();
    return this.#ended;
  }

  /** @throws UnsupportedError  other leases stand on it too, and they cannot go along */
  handOver(): ExportedLease {
    if (this.#entries.size > 1) {
      const message = `A lease of a reentrant mutex cannot be exported while ${this.#entries.size} stand on one hold.`;
      throw new UnsupportedError(this.hold.lockName, message);
    }
    const exported = this.hold.handOver();
    this.#entries.clear();
    return exported;
  }
}

/** What one lease of a shared hold stands on. */
export class Entry implements Holding {
  readonly shared: SharedHold;
  #onLost: LossListener | undefined;

  /** Use `SharedHold.enter`. */
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

  /** No lease shortens what another one counts on. */
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

  /** The hold was lost. */
  lose(reason: LossReason, forced?: Forced): void {
    this.#onLost?.(reason, forced);
  }
}

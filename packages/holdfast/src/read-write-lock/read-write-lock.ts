/** Readers together, writers alone: two locks of one name, and the lease that can change sides. */

import { type Holder, LeaseLostError, UnsupportedError } from "../core/errors.js";
import type { Hold } from "../core/hold.js";
import { describe, type Inspection, type WaitingClaim } from "../core/inspection.js";
import { type LockKeys, show } from "../core/keys.js";
import type { ExportedLease } from "../core/lease.js";
import { Lease } from "../core/lease.js";
import { Lock } from "../core/lock.js";
import type { ResolvedOptions } from "../core/options.js";
import { parseOwner } from "../core/protocol.js";
import type { Session } from "../core/session.js";
import type { Store } from "../core/store.js";
import { type PermitsProtocol, permitsProtocol } from "../permits/protocol.js";

/** Shared with other readers, or alone. */
export type ReadWriteMode = "read" | "write";

/** A reader takes one permit, a writer all: so many readers fit at a time. */
const EVERYTHING = 1_000_000;
const WEIGHTS: Readonly<Record<ReadWriteMode, number>> = { read: 1, write: EVERYTHING };

/** Which side a claim of that weight is on. @internal */
export function modeOf(weight: number): ReadWriteMode {
  return weight === EVERYTHING ? "write" : "read";
}

/** A lease of the read or the write side, which may change. */
export class ReadWriteLease extends Lease {
  readonly #hold: Hold;
  readonly #protocol: PermitsProtocol;
  readonly #timeoutMs: number;
  /** Whether a grant counts only once the lease was begun anew. */
  readonly #confirms: boolean;
  #mode: ReadWriteMode;
  /** True while the server may have made a change without our knowing. */
  #isInDoubt = false;
  #change = 0;
  /** Changes go one at a time, so that the mode is always that of the last one. */
  #last: Promise<unknown> = Promise.resolve();

  /** Leases come from the verbs of a ReadWriteSide. @internal */
  constructor(
    hold: Hold,
    facts: { readonly protocol: PermitsProtocol; readonly timeoutMs: number; readonly mode: ReadWriteMode },
  ) {
    super(hold);
    this.#hold = hold;
    this.#protocol = facts.protocol;
    this.#timeoutMs = facts.timeoutMs;
    this.#mode = facts.mode;
    this.#confirms = facts.protocol.confirm !== undefined;
  }

  /** Which side it certainly holds now: `"read"` while a change is under way, or its outcome unknown. */
  get mode(): ReadWriteMode {
    return this.#mode;
  }

  /**
   * From writer to reader, without a moment in which another writer could come in: what was written can be read on.
   * Readers that wait at the head of the queue are granted in the same call. The token stays. A reader stays one.
   *
   * @throws LeaseLostError  it is over
   * @throws StoreError      outcome unknown; count on a reader's; calling it again is safe
   */
  async downgrade(): Promise<void> {
    await this.#inTurn(async () => {
      this.assertHeld();
      if (this.#mode === "read" && !this.#isInDoubt) return;
      this.#mode = "read";
      await this.#become("read");
    });
  }

  /**
   * From reader to writer, if there is no other reader now. It never waits: two readers that both waited for each
   * other to leave would wait for ever, so both get null. Whoever gets null may release, and acquire the write side.
   *
   * Waiting writers are passed by, and readers too: they could not come in before this lease ends anyway.
   *
   * @returns this same lease, with a new and higher token; null if there are other readers, and it is still a reader's
   * @throws LeaseLostError  it is over
   * @throws StoreError      outcome unknown; count on a reader's; calling it, or `downgrade`, again is safe
   */
  async tryUpgrade(): Promise<this | null> {
    return this.#inTurn(async () => {
      this.assertHeld();
      return this.#mode === "write" || (await this.#become("write")) ? this : null;
    });
  }

  /** @throws UnsupportedError  also while a change is under way, or its outcome unknown: `downgrade` settles that */
  override export(): ExportedLease {
    this.assertHeld();
    if (this.#isInDoubt) {
      const message = `The lease on ${show(this.name)} cannot be exported while it is not known whether it reads or writes.`;
      throw new UnsupportedError(this.name, message);
    }
    return { ...super.export(), mode: this.#mode };
  }

  async #become(mode: ReadWriteMode): Promise<boolean> {
    this.#change += 1;
    this.#isInDoubt = true;
    this.#hold.changes();
    const answer = await this.#protocol.reweigh(this.#hold.grant, WEIGHTS[mode], this.#change, this.#timeoutMs);
    // With replicas the change counts when they have it.
    this.#isInDoubt = this.#confirms && typeof answer === "number";
    if (answer === null) return false;
    if (typeof answer === "string") {
      // The server does not know it any more: a renewal finds out why, and tells whoever listens.
      await this.extend(this.#hold.leaseMs);
      throw new LeaseLostError(this.name, { reason: "server-lost", token: this.token, owner: this.owner });
    }
    this.#hold.regranted(answer);
    if (this.#confirms) await this.extend(this.#hold.leaseMs);
    this.#isInDoubt = false;
    this.#mode = mode;
    // It may have ended here while the answer was on its way.
    this.assertHeld();
    return true;
  }

  #inTurn<Result>(change: () => Promise<Result>): Promise<Result> {
    const turn = this.#last.then(change);
    this.#last = turn.catch(() => {});
    return turn;
  }
}

/** Somebody who reads or writes. */
export interface ReadWriteHolder extends Holder {
  readonly mode: ReadWriteMode;
}

/** What `inspect` tells about a read-write lock, the same on both sides. A snapshot. */
export interface ReadWriteInspection extends Inspection {
  /** The first 1 000, the one whose lease ends first at the front. */
  readonly holders: readonly ReadWriteHolder[];
  readonly waiters: readonly (WaitingClaim & { readonly mode: ReadWriteMode })[];
}

/** One side of a read-write lock, with the verbs of every lock. */
export class ReadWriteSide extends Lock<ReadWriteLease> {
  readonly #permits: PermitsProtocol;

  /** Sides come from a ReadWriteLock. @internal */
  constructor(session: Session, protocol: PermitsProtocol, defaults: ResolvedOptions, mode: ReadWriteMode) {
    super(session, { ...protocol, mode }, { ...defaults, amount: WEIGHTS[mode] }, leasesOf(session, protocol, mode));
    this.#permits = protocol;
  }

  /** Who reads or writes, and who waits for what. Changes nothing. @throws StoreError */
  override async inspect(): Promise<ReadWriteInspection> {
    this.session.assertOpen(this.name);
    const state = await this.#permits.inspect(undefined, this.session.commandTimeoutMs);
    const described = await describe(this.session, this.protocol, state);
    return {
      ...described,
      holders: described.holders.map((holder, i) => ({ ...holder, mode: modeOf(state.holders[i]?.weight ?? 1) })),
      waiters: described.waiters.map((waiter) => ({
        ...waiter,
        mode: modeOf(parseOwner(waiter.owner)?.amount ?? 1),
      })),
    };
  }
}

/**
 * Readers share it, a writer has it alone, across processes, on one server, between failovers.
 *
 * Both sides stand in one queue, first come, first served: readers that come after a waiting writer wait behind it,
 * so readers cannot starve a writer, nor writers a reader. All readers up to the next writer are granted by one
 * release. Not reentrant: a reader that acquires the write side waits for itself; see `ReadWriteLease.tryUpgrade`.
 */
export class ReadWriteLock {
  /** Name of the lock. */
  readonly name: string;
  /** Held together with other readers. */
  readonly read: ReadWriteSide;
  /** Held alone. */
  readonly write: ReadWriteSide;

  /** Locks come from the factory of a Holdfast. @internal */
  constructor(session: Session, protocol: PermitsProtocol, defaults: ResolvedOptions) {
    this.name = protocol.name;
    this.read = new ReadWriteSide(session, protocol, defaults, "read");
    this.write = new ReadWriteSide(session, protocol, defaults, "write");
  }
}

/** How holds become leases of that side. */
export function leasesOf(
  session: Session,
  protocol: PermitsProtocol,
  mode: ReadWriteMode,
): (hold: Hold) => ReadWriteLease {
  return (hold) => new ReadWriteLease(hold, { protocol, timeoutMs: session.commandTimeoutMs, mode });
}

/** The protocol of the read-write lock of that name. */
export function readWriteLockProtocol(place: {
  readonly store: Store;
  readonly name: string;
  readonly keys: LockKeys;
  readonly inbox: string;
}): PermitsProtocol {
  return permitsProtocol({ ...place, kind: "read-write-lock", declared: EVERYTHING, numbered: 0 });
}

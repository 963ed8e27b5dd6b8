/** The read-write lock, its two sides, and the lease, which can change sides. */

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

/** `read` is shared with other readers; `write` is exclusive. */
export type ReadWriteMode = "read" | "write";

/**
 * The number of permits. A reader takes one and a writer takes all, so this is also the maximum number of concurrent
 * readers.
 */
const EVERYTHING = 1_000_000;
const WEIGHTS: Readonly<Record<ReadWriteMode, number>> = { read: 1, write: EVERYTHING };

/** The side of a claim with this weight. */
export function modeOf(weight: number): ReadWriteMode {
  return weight === EVERYTHING ? "write" : "read";
}

/** A lease on the read or the write side. `downgrade` and `tryUpgrade` change the side. */
export class ReadWriteLease extends Lease {
  readonly #hold: Hold;
  readonly #protocol: PermitsProtocol;
  readonly #timeoutMs: number;
  /** Whether a grant counts only after the lease has been renewed once, because the store waits for replicas. */
  readonly #confirms: boolean;
  #mode: ReadWriteMode;
  /** True while the server may have made a change that this process does not know about. */
  #isUncertain = false;
  #change = 0;
  /** Changes run one at a time, so that `mode` always reflects the last one. */
  #last: Promise<unknown> = Promise.resolve();

  /** @internal */
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

  /** The side that this lease certainly holds: `"read"` while a change is in progress or its outcome is unknown. */
  get mode(): ReadWriteMode {
    return this.#mode;
  }

  /**
   * Turns a write lease into a read lease. No other writer can get the lock in between, so the holder can keep
   * reading what it wrote. The same call grants the lock to the readers at the head of the queue. The token stays the
   * same. Does nothing to a read lease.
   *
   * @throws LeaseLostError  the lease is over
   * @throws StoreError      outcome unknown; assume that you hold only the read side; calling it again is safe
   */
  async downgrade(): Promise<void> {
    await this.#inTurn(async () => {
      this.assertHeld();
      if (this.#mode === "read" && !this.#isUncertain) return;
      this.#mode = "read";
      await this.#become("read");
    });
  }

  /**
   * Turns a read lease into a write lease if there are no other readers now. It never waits, because two readers that
   * wait for each other to leave would wait forever. A caller that gets null can release the lease and acquire the
   * write side.
   *
   * The upgrade overtakes waiting writers and the readers behind them. They could not get the lock before this lease
   * ends anyway.
   *
   * @returns this same lease, with a new, higher token (the same token if it is a write lease already); null if there
   *          are other readers; the lease then remains a read lease
   * @throws LeaseLostError  the lease is over
   * @throws StoreError      outcome unknown; assume that you hold only the read side; calling this or `downgrade` is
   *                         safe
   */
  async tryUpgrade(): Promise<this | null> {
    return this.#inTurn(async () => {
      this.assertHeld();
      return this.#mode === "write" || (await this.#become("write")) ? this : null;
    });
  }

  /**
   * @throws UnsupportedError  also while a change is in progress or its outcome is unknown; call `downgrade` to settle
   *                           it
   */
  override export(): ExportedLease {
    this.assertHeld();
    if (this.#isUncertain) {
      const message = `The lease on ${show(this.name)} cannot be exported while its side (read or write) is unknown: call downgrade() first.`;
      throw new UnsupportedError(this.name, message);
    }
    return { ...super.export(), mode: this.#mode };
  }

  async #become(mode: ReadWriteMode): Promise<boolean> {
    this.#change += 1;
    this.#isUncertain = true;
    this.#hold.changes();
    const answer = await this.#protocol.reweigh(this.#hold.grant, WEIGHTS[mode], this.#change, this.#timeoutMs);
    // If the store waits for replicas, the change counts only once they have acknowledged it.
    this.#isUncertain = this.#confirms && typeof answer === "number";
    if (answer === null) return false;
    if (typeof answer === "string") {
      // The server no longer has this lease. A renewal finds out why and notifies the listeners.
      await this.extend(this.#hold.leaseMs);
      throw new LeaseLostError(this.name, { reason: "server-lost", token: this.token, owner: this.owner });
    }
    this.#hold.regranted(answer);
    if (this.#confirms) await this.extend(this.#hold.leaseMs);
    this.#isUncertain = false;
    this.#mode = mode;
    // The lease may have expired locally while the reply was in flight.
    this.assertHeld();
    return true;
  }

  #inTurn<Result>(change: () => Promise<Result>): Promise<Result> {
    const turn = this.#last.then(change);
    this.#last = turn.catch(() => {});
    return turn;
  }
}

/** A reader or a writer. */
export interface ReadWriteHolder extends Holder {
  /** The side that this holder has. */
  readonly mode: ReadWriteMode;
}

/**
 * The state of a read-write lock, as returned by `inspect`, which returns the same state for both sides. A snapshot:
 * the state may have changed by the time you read it.
 */
export interface ReadWriteInspection extends Inspection {
  /** At most 1,000 holders, ordered by the end of their lease, earliest first. */
  readonly holders: readonly ReadWriteHolder[];
  /** The first waiters, in queue order. */
  readonly waiters: readonly (WaitingClaim & { readonly mode: ReadWriteMode })[];
}

/** One side of a read-write lock. It has the methods of every lock. */
export class ReadWriteSide extends Lock<ReadWriteLease> {
  readonly #permits: PermitsProtocol;

  /** @internal */
  constructor(session: Session, protocol: PermitsProtocol, defaults: ResolvedOptions, mode: ReadWriteMode) {
    super(session, { ...protocol, mode }, { ...defaults, amount: WEIGHTS[mode] }, leasesOf(session, protocol, mode));
    this.#permits = protocol;
  }

  /** Returns the holders and waiters of both sides. Read-only. @throws StoreError, ClosedError */
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
 * A lock that any number of readers can share, or that one writer holds alone. This applies across processes
 * that use one server, unless a failover occurs.
 *
 * Both sides use one queue, first come, first served. Readers that arrive after a waiting writer wait behind it, so
 * readers cannot starve a writer, and writers cannot starve a reader. One release grants the lock to all readers up to
 * the next writer.
 *
 * Not reentrant: a reader that acquires the write side waits for itself. See `ReadWriteLease.tryUpgrade`.
 *
 * @example
 * const { read, write } = holdfast.readWriteLock("catalog");
 * const items = await read.run(() => loadItems());
 * await write.run(async (lease) => {
 *   await replaceItems(items, { signal: lease.signal });
 * });
 */
export class ReadWriteLock {
  /** Name of the lock. */
  readonly name: string;
  /** The read side, shared with other readers. */
  readonly read: ReadWriteSide;
  /** The write side, exclusive. */
  readonly write: ReadWriteSide;

  /** @internal */
  constructor(session: Session, protocol: PermitsProtocol, defaults: ResolvedOptions) {
    this.name = protocol.name;
    this.read = new ReadWriteSide(session, protocol, defaults, "read");
    this.write = new ReadWriteSide(session, protocol, defaults, "write");
  }
}

/** Returns the function that turns a hold into a lease on side `mode`. */
export function leasesOf(
  session: Session,
  protocol: PermitsProtocol,
  mode: ReadWriteMode,
): (hold: Hold) => ReadWriteLease {
  return (hold) => new ReadWriteLease(hold, { protocol, timeoutMs: session.commandTimeoutMs, mode });
}

/** The lock protocol of one read-write lock. */
export function readWriteLockProtocol(place: {
  readonly store: Store;
  readonly name: string;
  readonly keys: LockKeys;
  readonly inbox: string;
}): PermitsProtocol {
  return permitsProtocol({ ...place, kind: "read-write-lock", declared: EVERYTHING, numbered: 0 });
}

/**
 * Assigns a small number to each live worker, for example for use in generated ids.
 *
 * The number is a slot of a semaphore. The lease on the server is longer than the holder assumes, by the rest time. So
 * a number that was not released stays unused for at least that long before the next worker gets it. With each renewal,
 * the holder records the time that its own clock shows at the end of the lease. The next holder begins after that time.
 */
import { AcquireTimeoutError, type Holdfast, type SemaphoreHolder, type SemaphoreLease } from "holdfast";
import {
  acquire,
  anyInternalsOf,
  checkKnown,
  checkWhole,
  type Hold,
  insist,
  internalsOf,
  Lease,
  Lock,
  lockKeys,
  type ResolvedOptions,
  resolve,
  type Session,
  show,
} from "holdfast/internal";
import { SlotUse } from "./protocol.js";

/** Options of `workerSlot`. */
export interface WorkerSlotOptions {
  /** How many numbers there are, starting at 0: the `permits` of the semaphore. A whole number from 1 to 1,000,000. */
  readonly count: number;

  /**
   * How long a number may be used after the last confirmed renewal. A longer lease survives longer pauses and outages.
   * A shorter lease frees the number of a crashed worker sooner. Whole milliseconds, 100 to 31,536,000,000.
   * @default 60_000
   */
  readonly leaseMs?: number | undefined;

  /**
   * How long a number that was not released stays unused after its lease. A longer time protects against workers that
   * notice late that their lease has expired. A released number is free immediately. Whole milliseconds, 0 to
   * 31,536,000,000.
   * @default 30_000
   */
  readonly restMs?: number | undefined;

  /**
   * Longest wait while all numbers are taken. Milliseconds, 0 or more; Infinity waits forever.
   * @default the default of the Holdfast, 10_000
   */
  readonly waitMs?: number | undefined;

  /** Aborts the wait; the call rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined;

  /** Free text shown in inspections of the numbers, at most 256 bytes. */
  readonly label?: string | undefined;
}

const NAMES: readonly (keyof WorkerSlotOptions)[] = ["count", "leaseMs", "restMs", "waitMs", "signal", "label"];
const YEAR_MS = 31_536_000_000;

/** Undefined if the numbers may have been free: the semaphore was paused, or the server did not reply. */
function takenMessage({ lockName, waitMs, pause, cause }: AcquireTimeoutError): string | undefined {
  if (pause !== undefined || cause !== undefined) return undefined;
  const taken = waitMs === 0 ? "are taken" : `were taken for ${waitMs} ms`;
  return `All numbers of ${show(lockName)} ${taken}. You hold no number, so retrying is safe; error.holders lists the holders.`;
}

/** All numbers were taken until the wait ended. Nothing is held; retrying is safe. */
export class SlotsTakenError extends AcquireTimeoutError {
  override readonly name: string = "SlotsTakenError";

  /** At most 1,000 holders, ordered by the end of their lease, earliest first; empty if the server did not say. */
  readonly holders: readonly SemaphoreHolder[];

  constructor(error: AcquireTimeoutError, holders: readonly SemaphoreHolder[]) {
    super(error.lockName, error, takenMessage(error));
    this.holders = holders;
  }
}

/** A number that no other live worker has. It is renewed until it is released. */
export class WorkerSlot extends Lease {
  /**
   * The smallest number that was free: 0 to `count` - 1, or higher if `resize` raised the number of permits above
   * `count`.
   */
  readonly number: number;
  readonly #use: SlotUse;
  #notBeforeAtMs = 0;

  /** @internal */
  constructor(hold: Hold, use: SlotUse) {
    super(hold);
    this.number = hold.grant.slots[0] as number; // permits of such a lease are numbered
    this.#use = use;
    // When the Holdfast closes, it releases the number without the user's involvement, so record the use here.
    hold.onLost((reason) => {
      if (reason === "closed") use.inUse();
    });
  }

  /**
   * The last time at which the previous holder may have used the number, in milliseconds since 1970 by that holder's
   * clock; 0 if no previous holder is known. If your ids contain a time, use only times of your own clock that are
   * later than this one. Then no two ids are the same, however much the clocks differ.
   */
  get notBeforeAtMs(): number {
    return this.#notBeforeAtMs;
  }

  /**
   * Records that the number is in use, and reads when the previous holder last used it.
   *
   * @throws LeaseLostError, StoreError
   * @internal
   */
  async begin(session: Session, leaseMs: number): Promise<void> {
    await insist(session, () => this.extend(leaseMs));
    this.#notBeforeAtMs = await insist(session, () => this.#use.beforeMs());
  }

  /** Returns how long the number may still be used, in milliseconds. */
  override validForMs(): number {
    const leftMs = super.validForMs();
    if (leftMs > 0) this.#use.inUse();
    return leftMs;
  }
}

/**
 * Takes the smallest free number and holds it until it is released.
 *
 * For each id, call `assertHeld` after you have read the clock. It does no I/O, and is correct even directly after a
 * pause of the process. The numbers are the slots of `holdfast.semaphore(name, { permits: count })`: inspect it to see
 * who has which number, and call `resize` to change how many there are.
 *
 * @param name  name of the semaphore, 1 to 512 bytes
 * @throws SlotsTakenError        all numbers were taken until `waitMs`; lists their holders
 * @throws CapacityMismatchError  other processes use a different `count`
 * @throws PausedError, StoreError, EvictionError, ClosedError  as `acquire` of a semaphore; nothing is held
 * @throws LeaseLostError         the lease was lost before the number was recorded as in use
 * @throws UnsupportedError       this Holdfast uses several independent servers
 * @throws TypeError, RangeError  an invalid name or option; nothing was sent
 * @throws the reason of `signal`, if it aborts the wait
 *
 * @example
 * await using slot = await workerSlot(holdfast, "id-generators", { count: 1_024 });
 * const ms = Date.now();
 * slot.assertHeld(); // after you have read the clock
 * const id = `${ms}-${slot.number}`;
 */
export async function workerSlot(holdfast: Holdfast, name: string, options: WorkerSlotOptions): Promise<WorkerSlot> {
  const { count, leaseMs = 60_000, restMs = 30_000, ...rest } = checkKnown(options, NAMES);
  checkWhole("count", count, 1, 1_000_000);
  checkWhole("restMs", restMs, 0, YEAR_MS);
  anyInternalsOf(holdfast);
  const semaphore = holdfast.semaphore(name, { permits: count as number }); // just checked
  const { session, protocol: base, defaults } = Lock.partsOf<SemaphoreLease>(semaphore);
  const how: ResolvedOptions = { ...resolve({ ...rest, leaseMs, renew: true }, defaults), maxHoldMs: Infinity };
  const use = new SlotUse(
    session,
    base,
    lockKeys(internalsOf(holdfast, name).prefix, "worker-slot", name).lock,
    restMs,
  );
  let slot: WorkerSlot;
  try {
    slot = await acquire(session, use.protocol, how, (hold) => new WorkerSlot(hold, use));
  } catch (error) {
    if (!(error instanceof AcquireTimeoutError)) throw error;
    const seen = await semaphore.inspect().catch(() => undefined);
    throw new SlotsTakenError(error, seen?.holders ?? []);
  }
  try {
    await slot.begin(session, leaseMs);
    return slot;
  } catch (error) {
    void slot.release().catch(() => {});
    throw error;
  }
}

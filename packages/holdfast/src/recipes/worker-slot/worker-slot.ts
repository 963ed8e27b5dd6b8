/**
 * A small number for each worker that is alive, such as goes into the ids that it makes.
 *
 * It is a slot of a semaphore. The lease on the server is longer by the rest than the holder relies on it, so a number that
 * nobody has given back is out of use for that long at least before it is anybody else's; and with each renewal the holder
 * notes what its own clock can show at the end, after which the next one begins.
 */
import { AcquireTimeoutError, type Holdfast, type SemaphoreHolder, type SemaphoreLease } from "../../index.js";
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
} from "../../internal.js";
import { SlotUse } from "./protocol.js";

/** How a number is had, and kept. */
export interface WorkerSlotOptions {
  /** How many numbers there are, from 0: the `permits` of the semaphore of that name. A whole number from 1 to 1,000,000. */
  readonly count: number;

  /**
   * How long a number may be used after the last renewal that was confirmed. Longer rides out longer pauses and outages; shorter
   * frees the number of a dead worker sooner. Whole milliseconds, 100 to 31,536,000,000.
   * @default 60_000
   */
  readonly leaseMs?: number | undefined;

  /**
   * How long the number of a worker that was not heard of again rests after that, before somebody gets it. Longer allows for
   * workers that notice late that they are dead. One that was given back is free at once. Whole milliseconds, 0 to
   * 31,536,000,000.
   * @default 30_000
   */
  readonly restMs?: number | undefined;

  /** Longest wait while all numbers are taken. Milliseconds, 0 or more; Infinity never gives up. @default that of the Holdfast, 10_000 */
  readonly waitMs?: number | undefined;

  /** Ends the wait, and rejects with its reason. */
  readonly signal?: AbortSignal | undefined;

  /** Free text shown to whoever inspects the numbers, at most 256 bytes. */
  readonly label?: string | undefined;
}

const NAMES: readonly (keyof WorkerSlotOptions)[] = ["count", "leaseMs", "restMs", "waitMs", "signal", "label"];
const YEAR_MS = 31_536_000_000;

/** All numbers were taken until the wait ended. Nothing is held; trying again is safe. */
export class SlotsTakenError extends AcquireTimeoutError {
  override readonly name: string = "SlotsTakenError";

  /** The first 1,000 who have one, the one whose lease ends first at the front; empty if the server did not say. */
  readonly holders: readonly SemaphoreHolder[];

  constructor(error: AcquireTimeoutError, holders: readonly SemaphoreHolder[]) {
    super(error.lockName, error);
    this.holders = holders;
  }
}

/** A number that no other living worker has: renewed until it is given back. */
export class WorkerSlot extends Lease {
  /** From 0 to `count` less one: the smallest that was free. Higher where somebody has resized to more than `count`. */
  readonly number: number;
  readonly #use: SlotUse;
  #notBeforeAtMs = 0;

  /** @internal */
  constructor(hold: Hold, use: SlotUse) {
    super(hold);
    this.number = hold.grant.slots[0] as number; // permits of such a lease are numbered
    this.#use = use;
    // It is given back by then without a word from whoever uses it.
    hold.onLost((reason) => {
      if (reason === "closed") use.inUse();
    });
  }

  /**
   * Until when the holder before may have used the number, by its own clock, in ms since 1970; 0 if nothing is known of one. Who
   * makes ids of a time begins with one that is later by its own clock: then no two are the same, however the clocks differ.
   */
  get notBeforeAtMs(): number {
    return this.#notBeforeAtMs;
  }

  /** Notes that it is in use, and learns who used it before. @throws LeaseLostError, StoreError @internal */
  async begin(session: Session, leaseMs: number): Promise<void> {
    await insist(session, () => this.extend(leaseMs));
    this.#notBeforeAtMs = await insist(session, () => this.#use.beforeMs());
  }

  /** As of every lease: how long it may be used from now, in ms. */
  override validForMs(): number {
    const leftMs = super.validForMs();
    if (leftMs > 0) this.#use.inUse();
    return leftMs;
  }
}

/**
 * Takes the smallest number that is free, and keeps it.
 *
 * Ask `assertHeld` after the clock was read, for every id: it does no I/O, and tells the truth at the first line after a pause.
 * `holdfast.semaphore(name, { permits: count })` is what stands behind: it shows who has which number, and `resize` changes how
 * many there are.
 *
 * @param name  of the numbers, 1 to 512 bytes
 * @throws SlotsTakenError        all are taken until `waitMs`; says who has them
 * @throws CapacityMismatchError  other processes count on another `count`
 * @throws PausedError, StoreError, EvictionError, ClosedError  as `acquire` of a semaphore; nothing is held
 * @throws LeaseLostError         it was lost before it was noted as in use
 * @throws UnsupportedError       this Holdfast is on several independent servers
 * @throws TypeError, RangeError  a wrong name or option; nothing was sent
 * @throws the reason of `signal`
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

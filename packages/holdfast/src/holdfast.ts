/** `createHoldfast`: checks the options, and sets up the store, the session and the factories of all lock kinds. */
import { Barrier, type BarrierOptions } from "./barrier/barrier.js";
import { barrierProtocol } from "./barrier/protocol.js";
import { checkIsOptions, chooseStores, WAYS } from "./choose-stores.js";
import { adopt } from "./core/acquire.js";
import type { CloseOptions, CloseOutcome, HeldLease } from "./core/closing.js";
import { SlotInboxes } from "./core/inbox.js";
import { checkName, checkValue, lockKeys, show } from "./core/keys.js";
import type { ExportedLease, Lease } from "./core/lease.js";
import { Lock } from "./core/lock.js";
import { checkWhole } from "./core/options.js";
import { type Runtime, systemRuntime } from "./core/runtime.js";
import { CountDownLatch, type LatchOptions } from "./count-down-latch/count-down-latch.js";
import { latchProtocol } from "./count-down-latch/protocol.js";
import { Election } from "./election/election.js";
import { ElectionProtocol } from "./election/protocol.js";
import {
  checkExported,
  checkKnown,
  checkNoMore,
  checkOptions,
  graceOf,
  type HoldfastOptions,
  type LockOptions,
} from "./holdfast-options.js";
import { withInternals } from "./internals.js";
import { MultiLock } from "./multi-lock/multi-lock.js";
import { Mutex } from "./mutex/mutex.js";
import { onOneServer, shareStore } from "./on-one-server.js";
import type { PauseOptions, PauseOutcome, ResumeOptions, ResumeOutcome } from "./pausing/pausing.js";
import { ReadWriteLock, readWriteLockProtocol } from "./read-write-lock/read-write-lock.js";
import { noQuorumHere, quorumFactories } from "./redlock/factories.js";
import type { Redlock } from "./redlock/redlock.js";
import { HoldContexts } from "./reentrant-mutex/contexts.js";
import { ReentrantMutex } from "./reentrant-mutex/reentrant-mutex.js";
import {
  checkPermits,
  MOST_PERMITS,
  Semaphore,
  type SemaphoreOptions,
  semaphoreProtocol,
} from "./semaphore/semaphore.js";

export type { HoldfastOptions, LockOptions } from "./holdfast-options.js";

/** Creates locks on one server or cluster. On several independent servers, only the kind `redlock` is available. */
export interface Holdfast {
  /**
   * Returns the mutex with this name (1 to 512 bytes). Sends no request and needs no cleanup.
   * @throws TypeError, RangeError  an invalid name or option
   */
  mutex(name: string, options?: LockOptions): Mutex;

  /**
   * Returns the mutex with this name (1 to 512 bytes), for code that may acquire it again while holding it.
   * @throws TypeError, RangeError  an invalid name or option
   */
  reentrantMutex(name: string, options?: LockOptions): ReentrantMutex;

  /**
   * Combines several locks into one that is acquired all or nothing. A string is the name of a mutex.
   *
   * @param members  1 to 64 mutex names or locks of this Holdfast, of any kinds; no lock may appear twice
   * @throws TypeError, RangeError  an invalid member, or the same lock twice
   */
  multiLock(members: readonly (string | Lock)[]): MultiLock;

  /**
   * Returns the semaphore with this name (1 to 512 bytes). All processes must declare the same number of permits.
   * @throws TypeError, RangeError  an invalid name or number of permits
   */
  semaphore(name: string, options: SemaphoreOptions): Semaphore;

  /**
   * Returns the read-write lock with this name (1 to 512 bytes): `.read` is shared, `.write` is exclusive.
   * @throws TypeError, RangeError  an invalid name
   */
  readWriteLock(name: string): ReadWriteLock;

  /**
   * Returns the count-down latch with this name (1 to 512 bytes).
   * @throws TypeError, RangeError  an invalid name or option
   */
  countDownLatch(name: string, options?: LatchOptions): CountDownLatch;

  /**
   * Returns the barrier with this name (1 to 512 bytes), for `parties` parties (1 to 10,000).
   * @throws TypeError, RangeError  an invalid name or number of parties
   */
  barrier(name: string, options: BarrierOptions): Barrier;

  /**
   * Returns the election with this name (1 to 512 bytes).
   * @throws TypeError, RangeError  an invalid name
   */
  election(name: string): Election;

  /**
   * Returns the redlock with this name (1 to 512 bytes). It is held on a majority of the servers in the `redlock`
   * option.
   * @throws TypeError, RangeError  an invalid name
   * @throws UnsupportedError       this Holdfast was created without `redlock`; with it, all other factories throw this
   *                                error
   */
  redlock(name: string): Redlock;

  /**
   * Takes over a lease that this or another process exported with `lease.export()`.
   *
   * @throws LeaseLostError  the lease was already adopted and is still held (`handed-over`), has ended (`expired`), or is
   *                         not on the server, for example because it was exported with another prefix or ended more
   *                         than 10 minutes ago (`server-lost`)
   * @throws StoreError      outcome unknown; if the lease was adopted, it is released in the background, or expires
   * @throws TypeError, RangeError  the argument is not a result of `lease.export()`
   */
  adopt(exported: ExportedLease): Promise<Lease>;

  /**
   * Pauses a lock, for example for maintenance. Current holders keep it, but there are no new grants until `resume` is
   * called or `untilAtMs` is reached. Meanwhile an acquire rejects with PausedError, unless it has
   * `throughPause: true`. Waiters already in the queue keep their place and are served in order afterward. The pause is
   * stored on the server, so it outlives this process.
   *
   * @returns the pause and the current holders; or the earlier pause, if the lock was already paused
   * @throws StoreError    outcome unknown: the lock may be paused; `resume` undoes it
   * @throws ClosedError   this Holdfast was closed
   * @throws EvictionError  the server may evict locks and `allowEviction` is not set; nothing is paused
   * @throws UnsupportedError  this Holdfast is on several independent servers
   * @throws TypeError, RangeError  an invalid name or option, or an end time in the past
   */
  pause(name: string, options: PauseOptions): Promise<PauseOutcome>;

  /**
   * Ends a pause, regardless of who started it. Waiters are served in queue order, the first one immediately.
   *
   * @returns how long the lock was paused and how many waiters there were; or that it was not paused
   * @throws StoreError    outcome unknown: the lock may have been resumed; calling `resume` again is safe
   * @throws ClosedError, UnsupportedError, TypeError, RangeError  as for `pause`
   */
  resume(name: string, options: ResumeOptions): Promise<ResumeOutcome>;

  /**
   * Closes this Holdfast: rejects all waits with ClosedError, aborts the signals of all held leases, releases the
   * leases, and closes the connections that Holdfast opened, never your client. A `store` that several Holdfasts share
   * is closed when the last of them closes. A second call waits for the first. If servers do not reply, `close` takes
   * at most about twice `commandTimeoutMs`. Afterward every method that needs the server rejects with ClosedError,
   * including read-only ones.
   *
   * The lock of a `once` call whose work has started is released only by that work.
   *
   * With `graceMs`, no lease is released while its work is running: every lease signal aborts with the reason
   * `closing`, and each lease is renewed until its work releases it. Leases not released when the grace period ends are
   * left to expire. A second call with `graceMs: 0` ends the grace period.
   *
   * @returns which leases were released, and which may not have been
   * @throws TypeError, RangeError  an invalid option; `close` rejects for no other reason
   */
  close(options?: CloseOptions): Promise<CloseOutcome>;

  /** Returns the leases that this Holdfast holds now. Members of a multi-lock are listed separately. */
  held(): readonly HeldLease[];

  /** Same as `close()` without options. */
  [Symbol.asyncDispose](): Promise<void>;
}

/** Default of `keepMs` for latches: one day, which is longer than most jobs take. */
const KEEP_MS = 86_400_000;

/**
 * Creates a Holdfast, from which you get locks. Sends nothing until the first acquire.
 *
 * @throws TypeError, RangeError  an invalid option; the message names the option, its range and the value received
 * @throws UnsupportedError       an option that the client or the store does not support
 *
 * @example
 * import { createHoldfast } from "holdfast";
 * import { Redis } from "ioredis";
 *
 * const holdfast = createHoldfast({ redis: new Redis() });
 * await holdfast.mutex("order:42").run(async (lease) => {
 *   await charge(order, { signal: lease.signal });
 * });
 * await holdfast.close();
 */
export function createHoldfast(options: HoldfastOptions): Holdfast {
  return createHoldfastOn(systemRuntime, options);
}

/**
 * Same as `createHoldfast`, but with clocks, timers and random numbers supplied by the caller. For simulations.
 *
 * @param handOffMs  maximum lease of a provisional grant (a grant by message, before its confirmation), in ms.
 *                   Simulations pass less than the default of 3,000 to make it expire more often.
 * @throws TypeError, RangeError  an invalid option
 * @throws UnsupportedError       an option that the client or the store does not support
 */
export function createHoldfastOn(runtime: Runtime, options: HoldfastOptions, handOffMs?: number): Holdfast {
  checkIsOptions(options);
  const checked = checkOptions(options, WAYS);
  const { prefix, clientName, defaults } = checked;
  const stores = chooseStores(options);
  if (!("run" in stores)) {
    const voters = stores.map((one, i) => ({
      store: one,
      isOwn: one === options.redlock?.[i],
      close: shareStore(one),
    }));
    return quorumFactories({ ...checked, runtime, stores: voters }, defaults);
  }
  const store = stores;
  const isOwnStore = store === (options.store ?? options.redis);
  const { session, localQueues, factoryOf, mutexProtocolOf } = onOneServer(store, {
    runtime,
    options: checked,
    isOwnStore,
    handOffMs,
    slotInboxes: SlotInboxes,
  });

  const mutex = factoryOf(Mutex);
  const contexts = new HoldContexts();
  const reentrantMutex = (name: string, lockOptions?: LockOptions): ReentrantMutex => {
    return new ReentrantMutex(
      session,
      mutexProtocolOf("reentrant-mutex", name, lockOptions),
      defaults,
      contexts,
      localQueues,
    );
  };
  const semaphore = (name: string, semaphoreOptions?: SemaphoreOptions): Semaphore => {
    checkName(name);
    const { permits } = checkKnown(semaphoreOptions, ["permits"]);
    const declared = checkPermits(permits, MOST_PERMITS);
    const keys = lockKeys(prefix, "semaphore", name);
    const protocol = semaphoreProtocol({ store, name, keys, inbox: session.inboxOf(keys.tag), declared });
    return new Semaphore(session, protocol, defaults, declared);
  };
  const readWriteLock = (name: string, ...rest: readonly unknown[]): ReadWriteLock => {
    checkNoMore("readWriteLock takes a name", rest);
    const keys = lockKeys(prefix, "read-write-lock", checkName(name));
    const inbox = session.inboxOf(keys.tag);
    return new ReadWriteLock(session, readWriteLockProtocol({ store, name, keys, inbox }), defaults);
  };
  const countDownLatch = (name: string, latchOptions?: LatchOptions): CountDownLatch => {
    const { keepMs = KEEP_MS } = checkKnown(latchOptions, ["keepMs"]);
    const { base } = lockKeys(prefix, "count-down-latch", checkName(name));
    checkWhole("keepMs", keepMs, 1_000, 31_536_000_000);
    return new CountDownLatch(
      session,
      latchProtocol({ store, name, base, inbox: session.inboxPrefix, keepMs }),
      defaults,
    );
  };
  const barrier = (name: string, barrierOptions?: BarrierOptions): Barrier => {
    const { parties } = checkKnown(barrierOptions, ["parties"]);
    const { base } = lockKeys(prefix, "barrier", checkName(name));
    checkWhole("parties", parties, 1, 10_000);
    // The cast is safe because `checkWhole` accepts only numbers.
    const count = parties as number;
    const protocol = barrierProtocol({ store, name, base, inbox: session.inboxPrefix, parties: count });
    return new Barrier(session, protocol, defaults, count);
  };
  const election = (name: string, adoptedValue = ""): Election => {
    const keys = lockKeys(prefix, "election", checkName(name));
    const protocol = new ElectionProtocol({ store, name, keys, inbox: session.inboxOf(keys.tag) });
    return new Election(session, protocol, defaults, adoptedValue);
  };
  /** The kinds whose leases another process can adopt. */
  const lockOf: Readonly<Record<string, (name: string, exported: ExportedLease) => Lock>> = {
    mutex: (name, { key }) => mutex(name, key === undefined ? {} : { key }),
    "reentrant-mutex": (name, { key }) => reentrantMutex(name, key === undefined ? {} : { key }),
    // The number of permits does not matter for a lease that is already held.
    semaphore: (name) => semaphore(name, { permits: MOST_PERMITS }),
    election: (name, { value = "" }) => election(name, checkValue(value)),
    "read-write-lock": (name, { mode }) => readWriteLock(name)[mode ?? "write"],
  };

  const holdfast: Holdfast = {
    mutex,
    reentrantMutex,
    semaphore,
    readWriteLock,
    countDownLatch,
    barrier,
    election(name, ...rest: readonly unknown[]) {
      checkNoMore("election takes a name", rest);
      return election(name);
    },

    redlock: noQuorumHere,

    multiLock(members, ...rest: readonly unknown[]) {
      checkNoMore("multiLock takes an array of members", rest);
      const locks = Array.isArray(members)
        ? Array.from(members, (member: string | Lock) => (typeof member === "string" ? mutex(member) : member))
        : members;
      return new MultiLock(session, defaults, locks as Lock[]);
    },

    async adopt(exported) {
      const { kind, name } = checkExported(exported);
      const makeLock = Object.hasOwn(lockOf, kind) ? lockOf[kind] : undefined;
      if (makeLock === undefined)
        throw new TypeError(`kind must be one of ${Object.keys(lockOf).join(", ")}; got ${show(kind)}`);
      const { protocol, make } = Lock.partsOf(makeLock(name, exported));
      return adopt(session, protocol, exported, make);
    },

    pause: async (name, options) => (await import("./pausing/pausing.js")).pause({ session, prefix }, name, options),
    resume: async (name, options) => (await import("./pausing/pausing.js")).resume({ session, prefix }, name, options),

    held: () => session.held(),
    close: async (closeOptions) => session.close(graceOf(closeOptions)),
    async [Symbol.asyncDispose]() {
      await session.close();
    },
  };
  return withInternals(holdfast, { session, defaults, prefix, clientName });
}

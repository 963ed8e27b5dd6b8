/** `createHoldfast`: options, store, session, and the factories of all kinds. */
import { Barrier, type BarrierOptions } from "./barrier/barrier.js";
import { barrierProtocol } from "./barrier/protocol.js";
import { chooseStores, shareStore } from "./choose-stores.js";
import { clientRecords, renewing } from "./client-record/client-record.js";
import { adopt } from "./core/acquire.js";
import type { CloseOptions, CloseOutcome, HeldLease } from "./core/closing.js";
import { evictionQuestion, Guard } from "./core/guard.js";
import type { Hold } from "./core/hold.js";
import { checkName, checkValue, lockKeys, mappedKeys, show } from "./core/keys.js";
import type { ExportedLease } from "./core/lease.js";
import { Lease } from "./core/lease.js";
import { LocalQueues } from "./core/local-queue.js";
import { Lock } from "./core/lock.js";
import { checkWhole } from "./core/options.js";
import { type Runtime, systemRuntime } from "./core/runtime.js";
import { Session } from "./core/session.js";
import { CountDownLatch, type LatchOptions } from "./count-down-latch/count-down-latch.js";
import { latchProtocol } from "./count-down-latch/protocol.js";
import { Election } from "./election/election.js";
import { ElectionProtocol } from "./election/protocol.js";
import {
  checkExported,
  checkKnown,
  checkLockOptions,
  checkNoMore,
  checkOptions,
  graceOf,
  type HoldfastOptions,
  type LockOptions,
} from "./holdfast-options.js";
import { echoOn } from "./inbox/echo.js";
import { withInternals } from "./internals.js";
import { MultiLock } from "./multi-lock/multi-lock.js";
import { Mutex } from "./mutex/mutex.js";
import { MutexProtocol } from "./mutex/protocol.js";
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
import { readMemoryPolicy, warnOfHiddenPolicy } from "./server/eviction.js";

export type { HoldfastOptions, LockOptions } from "./holdfast-options.js";

/** A way to all locks on one server; or to those on a quorum of servers, and then to no other kind than `redlock`. */
export interface Holdfast {
  /**
   * The mutex of that name, 1 to 512 bytes. Costs nothing and needs no clean-up.
   * @throws TypeError, RangeError  a wrong name or option
   */
  mutex(name: string, options?: LockOptions): Mutex;

  /**
   * The mutex of that name, for code that may acquire it again while it holds it.
   * @throws TypeError, RangeError  a wrong name or option
   */
  reentrantMutex(name: string, options?: LockOptions): ReentrantMutex;

  /**
   * Several locks as one: all or none. A string is the name of a mutex.
   *
   * @param members  1 to 64 names and locks of this Holdfast, of any kinds, no two of which are the same lock
   * @throws TypeError, RangeError  a wrong member, or the same lock twice
   */
  multiLock(members: readonly (string | Lock)[]): MultiLock;

  /**
   * The semaphore of that name, 1 to 512 bytes. All processes declare the same number of permits.
   * @throws TypeError, RangeError  a wrong name or number of permits
   */
  semaphore(name: string, options: SemaphoreOptions): Semaphore;

  /**
   * The read-write lock of that name, 1 to 512 bytes: `.read` is shared, `.write` is exclusive.
   * @throws TypeError, RangeError  a wrong name
   */
  readWriteLock(name: string): ReadWriteLock;

  /**
   * The latch of that name, 1 to 512 bytes.
   * @throws TypeError, RangeError  a wrong name or option
   */
  countDownLatch(name: string, options?: LatchOptions): CountDownLatch;

  /**
   * The barrier of that name, 1 to 512 bytes, for so many parties.
   * @throws TypeError, RangeError  a wrong name or number
   */
  barrier(name: string, options: BarrierOptions): Barrier;

  /**
   * The election of that name, 1 to 512 bytes.
   * @throws TypeError, RangeError  a wrong name
   */
  election(name: string): Election;

  /**
   * The lock of that name, 1 to 512 bytes, on a majority of the servers given as `redlock`.
   * @throws TypeError, RangeError  a wrong name
   * @throws UnsupportedError       this Holdfast is on one server; or, of all other factories: it is on several
   */
  redlock(name: string): Redlock;

  /**
   * Goes on with a lease that `lease.export()` described in this or another process.
   *
   * @throws LeaseLostError  it had ended meanwhile
   * @throws StoreError      outcome unknown; if it was adopted, it ends by itself
   * @throws TypeError, RangeError  not what `export` returned
   */
  adopt(exported: ExportedLease): Promise<Lease>;

  /**
   * Takes a lock out of use for a while, as for maintenance: whoever holds it goes on, and nobody is granted after, until
   * somebody resumes or `untilAtMs` has come. Meanwhile an acquire rejects with PausedError, unless it was told to wait
   * through; whoever waited before keeps its place, and is served in order afterwards. It needs no process to live on.
   *
   * @returns the pause, and who holds the lock all the same; or the pause that somebody has begun before
   * @throws StoreError    it may have been paused all the same; `resume` undoes it
   * @throws ClosedError   this Holdfast was closed
   * @throws EvictionError  the server may evict locks, and that was not allowed; nothing is paused
   * @throws UnsupportedError  this Holdfast is on several independent servers
   * @throws TypeError, RangeError  a wrong name or option, or an end that has passed
   */
  pause(name: string, options: PauseOptions): Promise<PauseOutcome>;

  /**
   * Ends a pause, whoever has begun it. Those who wait are served in their order, the first at once.
   *
   * @returns how long it was paused, and how many were waiting; or that it is not paused
   * @throws StoreError    it may have been resumed all the same; calling it again is safe
   * @throws ClosedError, UnsupportedError, TypeError, RangeError  as `pause`
   */
  resume(name: string, options: ResumeOptions): Promise<ResumeOutcome>;

  /**
   * Ends all waits with ClosedError, aborts the signal of every lease that is held and gives it back, and
   * closes the connections that Holdfast opened, never yours; a `store` that several Holdfasts have been made on is
   * closed with the last of them. A second call waits for the first. Takes about two `commandTimeoutMs` at most where
   * servers do not answer.
   * From then on every verb that would ask the server rejects with ClosedError, those that only look included.
   *
   * A call of `once` whose work has begun is given back by its work alone.
   *
   * With `graceMs` nothing is given back under work that runs: the signal of every lease aborts for the reason `closing`, and
   * each is renewed until it is released. What is not by the end of the grace is left to run out by itself. A second call
   * with `graceMs: 0` ends the grace.
   *
   * @returns which leases were given back, and which may not have been
   * @throws TypeError, RangeError  a wrong option, and nothing else
   */
  close(options?: CloseOptions): Promise<CloseOutcome>;

  /** The leases of this Holdfast that are held now; the members of a multi-lock each for itself. */
  held(): readonly HeldLease[];

  /** As `close`. */
  [Symbol.asyncDispose](): Promise<void>;
}

const NO_OPTIONS: LockOptions = {};

/** A day: longer than most jobs, shorter than most memories. */
const KEEP_MS = 86_400_000;

/**
 * Makes a way to the locks on one server. Sends nothing until the first acquire.
 *
 * @throws TypeError, RangeError  a wrong option; the message names it, its range and what came
 */
export function createHoldfast(options: HoldfastOptions): Holdfast {
  return createHoldfastOn(systemRuntime, options);
}

/**
 * As `createHoldfast`, on clocks, timers and random numbers of the caller's: for simulations.
 *
 * @param handOffMs  longest lease of a grant by message before it is confirmed, in ms; 3 000 unless a simulation wants it to
 *                   matter more often
 * @throws TypeError, RangeError  a wrong option
 */
export function createHoldfastOn(runtime: Runtime, options: HoldfastOptions, handOffMs?: number): Holdfast {
  const { prefix, clientName, commandTimeoutMs, allowEviction, defaults } = checkOptions(options);
  const stores = chooseStores(options);
  if (!("run" in stores)) {
    const quorum = { prefix, clientName, commandTimeoutMs, allowEviction, runtime };
    const voters = stores.map((one, i) => ({
      store: one,
      isOwn: one === options.redlock?.[i],
      close: shareStore(one),
    }));
    return quorumFactories({ ...quorum, stores: voters }, defaults);
  }
  const store = stores;
  const closeStore = shareStore(store);
  const clientId = runtime.newClientId();
  const own = clientRecords(store, { prefix, clientId, clientName, timeoutMs: commandTimeoutMs, runtime });
  // Whoever wrote a store knows what is behind it; of a client's server we know only what it shows.
  const isOwnStore = store === (options.store ?? options.redis);
  const onHidden = isOwnStore ? () => {} : warnOfHiddenPolicy;
  const read = (): ReturnType<typeof readMemoryPolicy> => readMemoryPolicy(store, commandTimeoutMs);
  const guard = new Guard([...(allowEviction ? [] : [evictionQuestion({ read, onHidden })]), own.question], runtime);
  const records = renewing(own.records, guard);
  const echo = echoOn(store, isOwnStore);
  const facts = { store, runtime, prefix, clientId, commandTimeoutMs, records, guard, closeStore, echo };
  const session = new Session({ ...facts, handOffMs });

  const localQueues = new LocalQueues(session);
  const leaseOn = (hold: Hold): Lease => new Lease(hold);

  // On the path of every acquire.
  const mutexProtocolOf = (kind: string, name: string, lockOptions?: LockOptions): MutexProtocol => {
    checkName(name);
    const { key, recheckMs } = lockOptions === undefined ? NO_OPTIONS : checkLockOptions(lockOptions);
    const keys = key === undefined ? lockKeys(prefix, "mutex", name) : mappedKeys(prefix, "mutex", key);
    return new MutexProtocol({ store, name, key, keys, inbox: session.inboxOf(keys.tag), recheckMs }, kind);
  };
  const mutex = (name: string, lockOptions?: LockOptions): Mutex =>
    new Mutex(session, mutexProtocolOf("mutex", name, lockOptions), defaults, leaseOn, localQueues);
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
    // Checked just now.
    const count = parties as number;
    const protocol = barrierProtocol({ store, name, base, inbox: session.inboxPrefix, parties: count });
    return new Barrier(session, protocol, defaults, count);
  };
  const election = (name: string, adoptedValue = ""): Election => {
    const keys = lockKeys(prefix, "election", checkName(name));
    const protocol = new ElectionProtocol({ store, name, keys, inbox: session.inboxOf(keys.tag) });
    return new Election(session, protocol, defaults, adoptedValue);
  };
  /** The kinds whose leases can move to another process. */
  const lockOf: Readonly<Record<string, (name: string, exported: ExportedLease) => Lock>> = {
    mutex: (name, { key }) => mutex(name, key === undefined ? {} : { key }),
    "reentrant-mutex": (name, { key }) => reentrantMutex(name, key === undefined ? {} : { key }),
    // The number is of no account for a lease that is held already.
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

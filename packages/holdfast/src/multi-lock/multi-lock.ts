import { run, timeoutError } from "../core/acquire.js";
import { StoreError, UnsupportedError } from "../core/errors.js";
import { channels, type GrantEvent } from "../core/events.js";
import type { Inspection } from "../core/inspection.js";
import { show } from "../core/keys.js";
import { Lease } from "../core/lease.js";
import { type ForceReleaseOptions, Lock } from "../core/lock.js";
import {
  type AcquireOptions,
  NONE,
  type ResolvedOptions,
  type RunOptions,
  resolve,
  type TryAcquireOptions,
} from "../core/options.js";
import type { Session } from "../core/session.js";
import { Mutex } from "../mutex/mutex.js";
import { acquireInOrder, inOrder, type OrderedRequest, tryAcquireInOrder } from "./in-order.js";
import { MultiHold } from "./multi-hold.js";
import { acquireTogether, type MutexParts, type Together } from "./together.js";

const MOST_MEMBERS = 64;
/** Sessions whose server or proxy rejects scripts with computed keys. Each session tries such a script only once. */
const refusing = new WeakSet<Session>();

/**
 * A lease on all members of a multi-lock. The leases of the members end together.
 *
 * `token` and `owner` are those of the member with the highest token, which rises with every grant of the same members.
 * Pass each resource the token of its own member, from `leases`, because clients that lock only that resource use
 * the tokens of that member. Release the multi-lease, not individual members.
 */
export class MultiLease extends Lease {
  /** The members' own leases, in the order in which the members were given. */
  readonly leases: readonly Lease[];

  /** @internal */
  constructor(hold: MultiHold, leases: readonly Lease[]) {
    super(hold);
    this.leases = leases;
  }
}

/** The state of a multi-lock, as returned by `inspect`: the state of all members together, and of each member. */
export interface MultiInspection extends Inspection {
  /** The state of each member, in the order in which the members were given. */
  readonly members: readonly Inspection[];
}

/**
 * Acquires several locks, all or none, with one deadline.
 *
 * If all members are mutexes, and in a cluster have the same hash tag, the first attempt is one script call. If all
 * members are free, it acquires all of them in one round trip. If that attempt fails or is not possible, the members
 * are acquired one after the other. The order is the same for all callers, whatever order the members are given in, so
 * multi-locks never deadlock. While a caller waits for one member, it holds the members before that one. If the wait
 * ends with a timeout, an abort or an error, they are released. If one of them is lost during the wait, the acquire
 * starts over.
 *
 * If any member is lost, the whole lease is lost, and the other members are released. `release` releases all members
 * and returns the worst outcome.
 *
 * @example
 * const accounts = holdfast.multiLock(["account:1", "account:2"]);
 * await accounts.run(async (lease) => {
 *   const [from, to] = lease.leases;
 *   await transfer(from?.token, to?.token, { signal: lease.signal });
 * });
 */
export class MultiLock {
  /** Names of the members, joined with ", ". */
  readonly name: string;
  /** The members, in the order in which they were given. */
  readonly members: readonly Lock[];
  readonly #session: Session;
  readonly #defaults: ResolvedOptions;
  readonly #inOrder: readonly Lock[];
  /** The members, if one script can acquire all of them. */
  readonly #mutexes: readonly MutexParts[] | undefined;

  /** Use the factory of a Holdfast instance instead. @throws TypeError, RangeError @internal */
  constructor(session: Session, defaults: ResolvedOptions, members: readonly Lock[]) {
    checkMembers(session, members);
    this.name = members.map(({ name }) => name).join(", ");
    this.members = [...members];
    this.#session = session;
    this.#defaults = defaults;
    this.#inOrder = inOrder(members, keyOf);
    // A single member needs only one request anyway.
    const areMutexes = members.length > 1 && members.every((member) => member instanceof Mutex);
    // The protocol of a Mutex is always a MutexProtocol.
    const mutexes = areMutexes ? members.map((member) => Lock.partsOf(member) as MutexParts) : undefined;
    // In a cluster, each slot may have its own inbox. A script can use only one slot, so all inboxes must be the same.
    const areTogether = mutexes?.every(({ protocol: { inbox } }) => inbox === mutexes[0]?.protocol.inbox);
    this.#mutexes = areTogether === true ? mutexes : undefined;
  }

  /**
   * Waits until all members are held.
   *
   * @throws AcquireTimeoutError  after `waitMs`; nothing is held; `lockName` is the member that was not acquired in
   *                              time, and `holder` is its holder
   * @throws PausedError          a member is paused; nothing is held
   * @throws StoreError           no reply; members that may have been granted are released or expire
   * @throws EvictionError        the server may evict locks, and `allowEviction` is not set; nothing is held
   * @throws ClosedError          this Holdfast instance was closed
   * @throws TypeError, RangeError  an invalid option; nothing was sent
   * @throws the signal's reason, if it aborts the wait; members that were acquired are being released
   */
  async acquire(options: AcquireOptions = NONE): Promise<MultiLease> {
    const request = this.#request(options);
    const { resolved } = request;
    const together = await this.#together(resolved);
    if (together !== undefined && "leases" in together) return this.#lease(together.leases, request);
    if (together !== undefined && resolved.waitMs === 0) {
      const { startedAtMs } = request;
      throw await timeoutError(this.#session, together.taken.protocol, resolved, { state: undefined }, startedAtMs);
    }
    return this.#lease(this.#asGiven(await acquireInOrder(request)), request);
  }

  /**
   * Acquires all members only if all are free now. Takes one round trip if all are mutexes (in a cluster, mutexes with
   * the same hash tag), otherwise up to one per member.
   *
   * @returns null if any member is held or has waiters; then nothing is held
   * @throws as `acquire`, but never AcquireTimeoutError
   */
  async tryAcquire(options: TryAcquireOptions = NONE): Promise<MultiLease | null> {
    const request = this.#request(options);
    const together = await this.#together({ ...request.resolved, waitMs: 0 });
    if (together !== undefined) return "leases" in together ? this.#lease(together.leases, request) : null;
    const leases = await tryAcquireInOrder(request);
    return leases === null ? null : this.#lease(this.#asGiven(leases), request);
  }

  /** Runs `work` with all members held, like `Lock.run`. @throws as `acquire`; in that case, `work` was not called */
  async run<Result>(
    work: (lease: MultiLease) => Result | Promise<Result>,
    options: RunOptions = NONE,
  ): Promise<Result> {
    return run(this.#session, work, options, (given) => this.acquire(given));
  }

  /**
   * Returns the holders and the waiters of the members. The members are read separately, so their states can be from
   * different moments.
   *
   * @throws StoreError
   */
  async inspect(): Promise<MultiInspection> {
    const members = await Promise.all(this.members.map((member) => member.inspect()));
    const tokens = members.flatMap(({ token }) => token ?? []);
    return {
      kind: "multi-lock",
      name: this.name,
      holders: members.flatMap(({ holders }) => holders),
      token: tokens.length === 0 ? undefined : Math.max(...tokens),
      waiterCount: members.reduce((sum, { waiterCount }) => sum + waiterCount, 0),
      waiters: members.flatMap(({ waiters }) => waiters),
      pause: members.find(({ pause }) => pause !== undefined)?.pause,
      members,
    };
  }

  /** Not supported: call `forceRelease` on a member instead. @throws UnsupportedError  always */
  async forceRelease(_whose: ForceReleaseOptions): Promise<boolean> {
    const names = this.members.map(({ name }) => show(name)).join(", ");
    const message = `A multi-lock cannot be force-released as a whole. Call forceRelease on each member: ${names}.`;
    throw new UnsupportedError(this.name, message);
  }

  #request(given: AcquireOptions): OrderedRequest & { readonly startedAtMs: number } {
    const resolved = resolve(given, this.#defaults);
    const { runtime } = this.#session;
    const startedAtMs = runtime.monotonicMs();
    const leftMs = (): number => Math.max(0, resolved.waitMs - (runtime.monotonicMs() - startedAtMs));
    return { locks: this.#inOrder, given, resolved, leftMs, startedAtMs };
  }

  /**
   * Tries to acquire all members in one request. Returns undefined if that is impossible or its outcome is uncertain.
   */
  async #together(resolved: ResolvedOptions): Promise<Together | undefined> {
    if (this.#mutexes === undefined || refusing.has(this.#session)) return undefined;
    try {
      return await acquireTogether(this.#session, this.name, this.#mutexes, resolved);
    } catch (error) {
      if (!(error instanceof StoreError) || (error.transient && resolved.waitMs === 0)) throw error;
      if (!error.transient) refusing.add(this.#session);
      return undefined;
    }
  }

  #asGiven(leases: readonly Lease[]): readonly Lease[] {
    return this.members.map((member) => leases[this.#inOrder.indexOf(member)] as Lease); // the same locks, sorted
  }

  #lease(leases: readonly Lease[], { startedAtMs }: { readonly startedAtMs: number }): MultiLease {
    const { runtime } = this.#session;
    const lease = new MultiLease(new MultiHold(this.name, leases, runtime), leases);
    if (channels.grant.hasSubscribers) {
      const waitedMs = runtime.monotonicMs() - startedAtMs;
      const { owner, token } = lease;
      const event: GrantEvent = { kind: "multi-lock", lockName: this.name, owner, call: {}, token, waitedMs };
      channels.grant.publish(event);
    }
    return lease;
  }
}

function keyOf(lock: Lock): string {
  return Lock.partsOf(lock).protocol.key;
}

function checkMembers(session: Session, members: unknown): asserts members is readonly Lock[] {
  const range = `1 to ${MOST_MEMBERS} names or locks`;
  if (!Array.isArray(members)) throw new TypeError(`members must be an array of ${range}; got ${show(members)}`);
  if (members.length < 1 || members.length > MOST_MEMBERS) {
    throw new RangeError(`members must contain ${range}; got ${members.length}`);
  }
  const seen = new Map<string, number>();
  members.forEach((member: unknown, i) => {
    if (!(member instanceof Lock)) {
      throw new TypeError(`members[${i}] must be the name of a mutex, or a lock; got ${show(member)}`);
    }
    if (Lock.partsOf(member).session !== session) {
      throw new TypeError(`members[${i}], ${show(member.name)}, must be a lock of the same Holdfast`);
    }
    const other = seen.get(keyOf(member));
    if (other !== undefined) {
      const both = `members[${other}], ${show((members[other] as Lock).name)}, and members[${i}], ${show(member.name)}`;
      throw new TypeError(`members must be different locks; ${both}, are the same lock`);
    }
    seen.set(keyOf(member), i);
  });
}

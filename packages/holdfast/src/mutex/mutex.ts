import { Condition } from "../condition/condition.js";
import type { MakeLease } from "../core/acquire.js";
import { checkName } from "../core/keys.js";
import type { Lease } from "../core/lease.js";
import type { LocalQueues } from "../core/local-queue.js";
import { Lock } from "../core/lock.js";
import type { ResolvedOptions } from "../core/options.js";
import type { Session } from "../core/session.js";
import type { MutexProtocol } from "./protocol.js";

/**
 * Mutual exclusion across processes: at most one live lease per name on one server, unless a failover occurs.
 *
 * Not reentrant: a holder that acquires again waits for itself.
 *
 * Waiters queue on the server, first come, first served. A release hands the mutex to the first waiter that is still
 * subscribed, in one atomic step. Callers in one process share a place in the queue unless they set `fairness:
 * "strict"`.
 *
 * A holder that crashes blocks the others until its lease ends. A process that freezes while it waits delays the others
 * by at most 3 s, because a hand-off is provisional until it is confirmed. A holder that lost its connection learns
 * from `lease.signal` and `lease.assertHeld()` that it lost the lock, before the lease ends on the server. A holder
 * that froze finds out when it runs again. Holdfast cannot stop what a holder does after it has lost the lock; only a
 * resource that checks `lease.token` can.
 *
 * The algorithm is Holdfast's own (docs/adr/001-queue-on-the-server.md). One key holds the owner, another the last
 * token, and a third the queue.
 *
 * @example
 * const mutex = holdfast.mutex("order:42");
 * await mutex.run(async (lease) => {
 *   const paid = await charge(order, { signal: lease.signal });
 *   lease.assertHeld(); // throws if the lock was lost in the meantime
 *   await save(paid, lease.token);
 * });
 */
export class Mutex extends Lock {
  readonly #protocol: MutexProtocol;

  /** @internal */
  constructor(
    session: Session,
    protocol: MutexProtocol,
    defaults: ResolvedOptions,
    make: MakeLease<Lease>,
    localQueues: LocalQueues,
  ) {
    super(session, protocol, defaults, make, localQueues);
    this.#protocol = protocol;
  }

  /**
   * Returns the condition `name` of this mutex. A holder waits on a condition until another holder signals it.
   *
   * @param name  1 to 512 bytes
   * @throws TypeError, RangeError  invalid name
   */
  condition(name: string): Condition {
    checkName(name);
    const { keys, inbox } = this.#protocol;
    const { base, lock, fence, queue, handed, pause } = keys;
    // Percent-encode the name, so that no condition name can produce the key of another object.
    const condition = `${base}:condition:${encodeURIComponent(name)}`;
    const own = { lock, fence, queue, handed, pause };
    const place = { store: this.session.store, mutex: this.#protocol, ...own, condition, inbox };
    return new Condition(this.session, name, place, this.defaults, this.make);
  }
}

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
 * Mutual exclusion across processes: at most one live lease per name, on one server, between failovers.
 *
 * Not reentrant: a holder that acquires again waits for itself.
 *
 * Waiters stand in a queue on the server, and a release hands the mutex directly to the first of them that is
 * still subscribed, in one step, first come, first served. Callers of one process share a place, unless they ask for
 * `fairness: "strict"`. A holder that crashes blocks the others until its lease ends. A process that freezes while it waits
 * delays them by 3 s at most, because a hand-over is provisional until it is confirmed. A paused or cut-off holder is told
 * by `lease.signal` and `lease.assertHeld()` before its lease ends on the server; what it does after that is its own
 * affair, unless the resource checks `lease.token`.
 *
 * Algorithm: ours (docs/adr/001-queue-on-the-server.md). One key holds the owner, one the last token, one the queue.
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
   * The condition of that name, 1 to 512 bytes, on this mutex: lets a holder wait for what another brings about.
   *
   * @throws TypeError, RangeError  a wrong name
   */
  condition(name: string): Condition {
    checkName(name);
    const { keys, inbox } = this.#protocol;
    const { base, lock, fence, queue, handed, pause } = keys;
    // Percent-encoded, so that no name makes a key of something else.
    const condition = `${base}:condition:${encodeURIComponent(name)}`;
    const own = { lock, fence, queue, handed, pause };
    const place = { store: this.session.store, mutex: this.#protocol, ...own, condition, inbox };
    return new Condition(this.session, name, place, this.defaults, this.make);
  }
}

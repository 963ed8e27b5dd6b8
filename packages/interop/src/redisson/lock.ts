import { ForeignLock } from "holdfast/internal";
import { lockChannel } from "./names.js";
import type { Place } from "./place.js";
import { hashProtocol } from "./protocol.js";
import { partsOf } from "./waiting.js";

/**
 * Redisson's `RLock`: mutual exclusion with Java services. A name has at most one live lease. This holds on one server
 * and between failovers.
 *
 * Not reentrant: each lease is a separate hold, so a holder that acquires again waits for itself. Waiters have no
 * order: a release notifies one waiter in each process, and the first that asks gets the lock. A crashed holder blocks
 * others until its lease ends.
 *
 * Holders are notified of a lost lease before it ends on the server. But they notice a forced release, by Node or Java,
 * only at the next renewal, because the protocol sends no message to the holder. Tokens are the server's clock in
 * microseconds. They order the grants of Holdfast unless that clock is set back. Java has no tokens.
 *
 * Algorithm: Redisson's, a hash with the owner and a channel that notifies waiters (docs/redisson.md). Holdfast uses a
 * separate owner id for each claim, so that Redisson does not count a second acquire as reentrant.
 */
export class RedissonLock extends ForeignLock {
  /** @internal */
  constructor(place: Place) {
    super(partsOf(place, hashProtocol(place, false), lockChannel(place.raw)));
  }
}

/**
 * Redisson's `RFencedLock`: like `RedissonLock`, with a token that rises with every grant to Java or Node.
 *
 * `lease.token` comes from Redisson's counter, so a resource can compare it with tokens of Java services. The counter
 * starts at 1. Its key never expires, so one key remains for each name that was ever locked. After a failover, tokens
 * that had not reached the replica can be issued again. A Java `RLock` with the same name excludes this lock, but does
 * not change the counter.
 */
export class RedissonFencedLock extends ForeignLock {
  /** @internal */
  constructor(place: Place) {
    super(partsOf(place, hashProtocol(place, true), lockChannel(place.raw)));
  }
}

/**
 * Redisson's `RSpinLock`: like `RedissonLock`, but waiters do not subscribe. They ask again after 4 to 64 ms.
 *
 * It uses the key of the `RLock` with this name, so the two exclude each other. A release by Holdfast also notifies
 * waiters for that `RLock`. Java's spin lock does not, so these waiters sleep until the lease would have ended.
 */
export class RedissonSpinLock extends ForeignLock {
  /** @internal */
  constructor(place: Place) {
    super(partsOf(place, hashProtocol(place, false), undefined));
  }
}

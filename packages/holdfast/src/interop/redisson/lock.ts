import { ForeignLock } from "../foreign-lock.js";
import { lockChannel } from "./names.js";
import type { Place } from "./place.js";
import { hashProtocol } from "./protocol.js";
import { partsOf } from "./waiting.js";

/**
 * Redisson's `RLock`: mutual exclusion with Java services, at most one live lease per name, on one server, between
 * failovers.
 *
 * Not reentrant: each lease is a hold of its own, and a holder that acquires again waits for itself. No order among waiters:
 * a release wakes one in each process, and who asks first has it. A holder that dies blocks the others until its lease ends.
 * Loss is told as everywhere in this library, before the lease ends on the server; but a forced release, by Node or Java, is
 * noticed only by the next renewal, since the protocol tells the holder nothing. Tokens are the clock of the server in
 * microseconds: they order the grants of Holdfast, as long as that clock is not set back; Java has none.
 *
 * Algorithm: Redisson's, a hash with the owner and a channel that wakes (docs/redisson.md), with owner ids of our own for
 * each request, so that none counts twice.
 */
export class RedissonLock extends ForeignLock {
  /** Locks come from the factory `redisson`. @internal */
  constructor(place: Place) {
    super(partsOf(place, hashProtocol(place, false), lockChannel(place.raw)));
  }
}

/**
 * Redisson's `RFencedLock`: as `RedissonLock`, with a token that rises with every grant, whoever gets it.
 *
 * `lease.token` is that of Redisson's own counter, so a resource can compare it with those of Java services. It counts from 1
 * and its key never expires: one stays for each name that was ever locked. A failover may repeat tokens, as far as the counter
 * had not reached the replica. A Java `RLock` of the same name is excluded, and leaves the counter as it is.
 */
export class RedissonFencedLock extends ForeignLock {
  /** Locks come from the factory `redisson`. @internal */
  constructor(place: Place) {
    super(partsOf(place, hashProtocol(place, true), lockChannel(place.raw)));
  }
}

/**
 * Redisson's `RSpinLock`: as `RedissonLock`, but its waiters do not listen: they ask about every 64 ms and need no
 * subscription.
 *
 * The key is that of an `RLock`, and the two exclude each other. A release publishes all the same, which Java leaves out: who
 * waits for an `RLock` of this name is woken by us, and by a spin lock of Java only when the lease would have ended.
 */
export class RedissonSpinLock extends ForeignLock {
  /** Locks come from the factory `redisson`. @internal */
  constructor(place: Place) {
    super(partsOf(place, hashProtocol(place, false), undefined));
  }
}

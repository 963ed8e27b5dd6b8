import { leaseProgram } from "../lease-program.js";
import type { Kind } from "../scene.js";
import { exclusive } from "./mutex.js";

const FIRST = "lock 0";
const SECOND = "lock 1";

const PERMIT = "lock 2";
/** A second mutex that no other session wants, so that multi-locks often get as far as their second lock. */
const BESIDE = "lock 3";

/**
 * Multi-locks over two mutexes in either order, mixed with callers of single mutexes. In some sessions the second
 * lock is a semaphore with one permit, so that a single attempt also acquires the locks one after another.
 */
export const multiLock: Kind = {
  name: "multi-lock",
  run(scene) {
    const { session, lockName } = scene;
    const { holdfast } = scene.member;
    const permit = holdfast.semaphore(PERMIT, { permits: 1 });
    const isMixed = session.way === "with-permits";
    if (session.amount <= 1 && isMixed) return leaseProgram({ ...scene, lockName: PERMIT }, exclusive(permit, PERMIT));
    if (session.amount <= 1) return leaseProgram(scene, exclusive(holdfast.mutex(lockName), lockName));
    const [first, second] = isMixed ? [BESIDE, PERMIT] : [FIRST, SECOND];
    const names = session.amount === 2 ? [second, first] : [first, second];
    const lock = holdfast.multiLock(names.map((name) => (name === PERMIT ? permit : name)));
    return leaseProgram(
      { ...scene, lockName: names.join(", ") },
      {
        acquire: (options) => lock.acquire(options),
        tryAcquire: (options) => lock.tryAcquire(options),
        holds: (lease) =>
          lease.leases.map((own, place) => ({ lockName: names[place] ?? "", lease, own, weight: 1, limit: 1 })),
        canMove: false,
      },
    );
  },
};

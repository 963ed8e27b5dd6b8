import { leaseProgram } from "../lease-program.js";
import type { Kind } from "../scene.js";
import { exclusive } from "./mutex.js";

const FIRST = "lock 0";
const SECOND = "lock 1";

/** Multi-locks over two mutexes, taken in either order, among callers of one of them. */
export const multiLock: Kind = {
  name: "multi-lock",
  run(scene) {
    const { session, lockName } = scene;
    const { holdfast } = scene.member;
    if (session.amount <= 1) return leaseProgram(scene, exclusive(holdfast.mutex(lockName), lockName));
    const names = session.amount === 2 ? [SECOND, FIRST] : [FIRST, SECOND];
    const lock = holdfast.multiLock(names);
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

import { leaseProgram } from "../lease-program.js";
import type { Kind } from "../scene.js";

/** So many permits has every semaphore. */
export const PERMITS = 4;

/** The semaphore; callers ask for one to four of four permits. */
export const semaphore: Kind = {
  name: "semaphore",
  run(scene) {
    const { lockName, session } = scene;
    const lock = scene.member.holdfast.semaphore(lockName, { permits: PERMITS });
    const permits = session.amount;
    return leaseProgram(scene, {
      acquire: (options) => lock.acquire({ ...options, permits }),
      tryAcquire: (options) => lock.tryAcquire({ ...options, permits }),
      holds: (lease) => [{ lockName, lease, weight: lease.permits, limit: PERMITS }],
      forceRelease: (whose) => lock.forceRelease(whose),
      canMove: true,
    });
  },
};

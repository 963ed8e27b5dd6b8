import type { Lease, Lock } from "holdfast";
import { type Leased, leaseProgram } from "../lease-program.js";
import type { Kind } from "../scene.js";

/** An exclusive lock for the lease program. */
export function exclusive<Held extends Lease>(lock: Lock<Held>, lockName: string): Leased<Held> {
  return {
    acquire: (options) => lock.acquire(options),
    tryAcquire: (options) => lock.tryAcquire(options),
    run: (work, options) => lock.run(work, options),
    holds: (lease) => [{ lockName, lease, weight: 1, limit: 1 }],
    forceRelease: (whose) => lock.forceRelease(whose),
    canMove: true,
  };
}

/** The mutex. */
export const mutex: Kind = {
  name: "mutex",
  run: (scene) => leaseProgram(scene, exclusive(scene.member.holdfast.mutex(scene.lockName), scene.lockName)),
};

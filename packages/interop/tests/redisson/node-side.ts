/** Holdfast as a side. */

import {
  type AcquireOptions,
  AcquireTimeoutError,
  createHoldfast,
  type Lease,
  LeaseLostError,
  StoreError,
} from "holdfast";
import { Redis } from "ioredis";
import type { ForeignLock } from "../../../holdfast/src/foreign-lock/foreign-lock.js";
import { type Redisson, redisson } from "../../src/redisson/index.js";
import type { Asked, Held, Locked, Maker, Settings, Side } from "./side.js";

/** Returns the lock of that type. */
export function lockOf(locks: Redisson, { type, name }: Locked): ForeignLock {
  switch (type) {
    case "lock":
      return locks.lock(name);
    case "fenced":
      return locks.fencedLock(name);
    case "spin":
      return locks.spinLock(name);
    case "fair":
      return locks.fairLock(name);
    case "read":
      return locks.readWriteLock(name).read;
    case "write":
      return locks.readWriteLock(name).write;
  }
}

/** Makes Holdfast sides. */
export const NODE: Maker = {
  label: "Node",
  async make({ port, watchdogMs, prefix = "", fairWaitMs = 300_000 }: Settings): Promise<Side> {
    const redis = new Redis({ port });
    redis.on("error", () => {});
    const holdfast = createHoldfast({ redis, leaseMs: watchdogMs, commandTimeoutMs: 1_000 });
    const nameMapper = (name: string): string => prefix + name;
    // Reader leases in the checks last up to a minute, and watchdogMs is their upper limit.
    const locks = redisson(holdfast, { nameMapper, watchdogMs: Math.max(watchdogMs, 60_000), fairWaitMs });
    return {
      label: "Node",

      async acquire(what: Locked, { waitMs, leaseMs }: Asked): Promise<Held | undefined> {
        const lock = lockOf(locks, what);
        const options = leaseMs === undefined ? {} : { leaseMs, renew: false };
        const lease = waitMs === 0 ? await lock.tryAcquire(options) : await waitFor(lock, { ...options, waitMs });
        if (lease === null) return undefined;
        return {
          token: what.type === "fenced" ? lease.token : undefined,
          unlock: async () => {
            try {
              return (await lease.release()) === "released";
            } catch (error) {
              if (error instanceof LeaseLostError) return false;
              throw error;
            }
          },
        };
      },

      isLocked: async (what) => (await lockOf(locks, what).inspect()).holders.some(isOf(what)),

      async forceUnlock(what) {
        const lock = lockOf(locks, what);
        const holder = (await lock.inspect()).holders.find(isOf(what));
        return holder !== undefined && lock.forceRelease({ owner: holder.owner });
      },

      async die() {
        redis.disconnect();
      },

      async close() {
        await holdfast.close();
        redis.disconnect();
      },
    };
  },
};

/** Resolves to null if the wait timed out. Retries transient store errors because a busy machine can cause them. */
async function waitFor(lock: ForeignLock, options: AcquireOptions): Promise<Lease | null> {
  for (let tries = 0; ; tries += 1) {
    try {
      return await lock.acquire(options);
    } catch (error) {
      if (error instanceof AcquireTimeoutError) return null;
      if (!(error instanceof StoreError) || !error.transient || tries === 3) throw error;
    }
  }
}

/** Filters holders because each side of a read-write lock lists the holders of both. */
function isOf({ type }: Locked): (holder: { readonly owner: string }) => boolean {
  return ({ owner }) => (type === "write" ? owner.endsWith(":write") : type !== "read" || !owner.endsWith(":write"));
}

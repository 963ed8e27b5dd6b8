/** Adapter for verrou, the lock library of AdonisJS, with its Redis store. */

import { E_LOCK_NOT_OWNED, type Lock, Verrou } from "@verrou/core";
import { redisStore } from "@verrou/core/drivers/redis";
import type { Connection, Held, Refused, Request, Subject } from "../subject.js";
import { monotonicMs } from "../topology/monotonic.js";
import { connectIoredis, info, lacks, no, versionOf } from "./peer.js";

/** verrou as a subject. */
export const subject: Subject = {
  name: "verrou",
  version: versionOf("@verrou/core"),
  settings:
    "its defaults; one lock object per claim; makes a single attempt with acquireImmediately; has no renewal and no signal",
  letters: ["m"],
  async connect(settings) {
    const client = await connectIoredis(settings);
    const locks = new Verrou({ default: "redis", stores: { redis: { driver: redisStore({ connection: client }) } } });
    const connection: Connection = {
      async acquire(request, kind) {
        if (kind !== "mutex") return lacks("verrou", kind);
        if (request.renew) return lacks("verrou", "renewal");
        // A lock object uses one owner id for all of its acquires, so create one per request.
        return await acquire(locks.createLock(request.lockName, request.leaseMs), request);
      },
      async close() {
        client.disconnect();
      },
    };
    return connection;
  },
};

async function acquire(lock: Lock, { waitMs, onOwner }: Request): Promise<Held | Refused> {
  onOwner?.(lock.getOwner());
  try {
    const isAcquired = await (waitMs === 0
      ? lock.acquireImmediately()
      : // Null means no limit in verrou; without a value it gives up after 30 s.
        lock.acquire({ retry: { timeout: waitMs ?? null } }));
    return isAcquired ? heldBy(lock) : no("busy", "acquire says no");
  } catch (error) {
    return info(error);
  }
}

function heldBy(lock: Lock): Held {
  let isReleased = false;
  return {
    owner: lock.getOwner(),
    token: null,
    validUntilMs() {
      const remainingMs = lock.getRemainingTime();
      return remainingMs === null ? null : monotonicMs() + remainingMs;
    },
    isHeld: () => !isReleased && !lock.isExpired(),
    onLost() {},
    onRenewed() {},
    extend: (leaseMs) => settled(lock.extend(leaseMs)),
    release() {
      isReleased = true;
      return settled(lock.release());
    },
  };
}

async function settled(call: Promise<void>): Promise<undefined | Refused> {
  try {
    await call;
    return undefined;
  } catch (error) {
    return error instanceof E_LOCK_NOT_OWNED ? no("not-owner", error.message) : info(error);
  }
}

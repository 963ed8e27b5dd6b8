/** Uses every function of the locks shared with other systems once, to show what a Redis user may not do. */
import { randomUUID } from "node:crypto";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { type Redisson, redisson } from "@holdfast/interop/redisson";
import { javaGetSet, javaUuid, timestampLock } from "@holdfast/interop/timestamp";
import { LockError, StoreError } from "../../src/core/errors.js";
import type { Lease } from "../../src/core/lease.js";
import type { Lock } from "../../src/core/lock.js";
import type { Holdfast } from "../../src/holdfast.js";
import { BRIEF_LEASE_MS, LONG_MS, SOON_MS } from "../../src/testing/delays.js";
import type { Complaint } from "./tour.js";

/** Clients of one Redis user, and a writer with all permissions. */
export interface Sharers {
  readonly first: Holdfast;
  readonly second: Holdfast;
  /** Sends a command as a service of the other system would. */
  write(command: string, ...words: (string | number)[]): Promise<unknown>;
}

interface Here extends Sharers {
  readonly one: Redisson;
  readonly two: Redisson;
}

type Step = (here: Here, name: string) => Promise<unknown>;

const PATIENT = { waitMs: LONG_MS };

/** Acquires a lock, waits for it with and without success, extends, releases, inspects, and force-releases it. */
async function walk({ one, two }: Here, lock: (locks: Redisson) => Lock): Promise<void> {
  const lease = await lock(one).acquire({ leaseMs: 20_000 });
  await vainly(lock(two));
  const next = lock(two).acquire(PATIENT);
  next.catch(() => {});
  await lease.extend(20_000);
  await lease.release();
  const { owner } = await next;
  await lock(one).inspect();
  await lock(one).forceRelease({ owner });
}

async function vainly(lock: Lock): Promise<void> {
  const error = await lock.acquire({ waitMs: SOON_MS / 4 }).then(
    () => undefined,
    (failure: unknown) => failure,
  );
  if (!(error instanceof LockError) || error.code !== "ERR_LOCK_ACQUIRE_TIMEOUT" || error.cause !== undefined)
    throw error;
}

const STEPS: Readonly<Record<string, Step>> = {
  "an RLock": (here, name) => walk(here, (locks) => locks.lock(name)),
  "a FencedLock": (here, name) => walk(here, (locks) => locks.fencedLock(name)),
  "a SpinLock": (here, name) => walk(here, (locks) => locks.spinLock(name)),
  "a FairLock": (here, name) => walk(here, (locks) => locks.fairLock(name)),
  "the reading side": async ({ one, two }, name) => {
    const [first, second] = [
      await one.readWriteLock(name).read.acquire(),
      await two.readWriteLock(name).read.acquire(),
    ];
    await vainly(two.readWriteLock(name).write);
    await first.extend(20_000);
    await first.release();
    await two.readWriteLock(name).read.inspect();
    await one.readWriteLock(name).read.forceRelease({ owner: second.owner });
  },
  "the writing side": (here, name) => walk(here, (locks) => locks.readWriteLock(name).write),
  "a writer that goes on reading": async ({ one }, name) => {
    await (await (await one.readWriteLock(name).write.acquire()).downgrade()).release();
  },
  "a dead waiter of Java in the fair queue": async ({ one, write }, name) => {
    await write("RPUSH", `redisson_lock_queue:{${name}}`, "dead:1", "unscored:2");
    await write("ZADD", `redisson_lock_timeout:{${name}}`, 1, "dead:1");
    await (await one.fairLock(name).acquire(PATIENT)).release();
  },
  "a queue of several": async ({ one, two, write }, name) => {
    const lease = await one.fairLock(name).acquire();
    const waits = [one, two].map((locks) => locks.fairLock(name).run(() => {}, PATIENT));
    let isOver = false;
    for (const wait of waits) wait.catch(() => (isOver = true));
    // The next holder shortens the deadlines of the waiters behind it, so this needs a second waiter.
    while (!isOver && Number(await write("LLEN", `redisson_lock_queue:{${name}}`)) < 2);
    await lease.release();
    await Promise.all(waits);
  },
  "several at once": ({ one }, name) => one.multiLock([`${name}:a`, `${name}:b`]).run(() => {}, PATIENT),
  "a semaphore": async ({ one, two }, name) => {
    const semaphore = one.semaphore(name);
    await semaphore.trySetPermits(1, { ttlMs: 60_000 });
    await semaphore.addPermits(1);
    await semaphore.acquire({ leaseMs: BRIEF_LEASE_MS, renew: false });
    const lease = await semaphore.acquire();
    await (await two.semaphore(name).acquire(PATIENT)).release();
    await lease.extend(20_000);
    await lease.release();
    const last = await semaphore.acquire();
    await semaphore.inspect();
    await semaphore.forceRelease({ token: last.token });
    await semaphore.release();
    await semaphore.releaseIfExists();
    await semaphore.drainPermits();
    await semaphore.availablePermits();
  },
  "a semaphore that Java has deleted": async ({ one, write }, name) => {
    await one.semaphore(name).trySetPermits(1);
    const lease = await one.semaphore(name).acquire({ renew: false });
    await write("DEL", name);
    await lease.release().catch(lost);
  },
  "permits that expire": async ({ one, two }, name) => {
    const semaphore = one.permitExpirableSemaphore(name);
    await semaphore.trySetPermits(2);
    await semaphore.setPermits(4);
    await semaphore.addPermits(1);
    await semaphore.acquire({ leaseMs: BRIEF_LEASE_MS, renew: false });
    const held = await semaphore.acquire({ permits: 4 });
    await (await two.permitExpirableSemaphore(name).acquire(PATIENT)).release();
    await held.extend(20_000);
    const [id = "", other = "", third = "", last = ""] = held.permitIds;
    await semaphore.updateLeaseTime(id, 60_000);
    await semaphore.getLeaseTime(id);
    await semaphore.getPermits();
    await semaphore.inspect();
    await semaphore.tryRelease(id);
    await semaphore.tryReleaseAll([other, third]);
    await semaphore.forceRelease({ owner: last });
    await held.release().catch(lost);
  },
  "permits of a count that ends": async ({ one }, name) => {
    await one.permitExpirableSemaphore(name).trySetPermits(1, { ttlMs: 60_000 });
    await (await one.permitExpirableSemaphore(name).acquire()).release();
  },
  "a latch": async ({ one, two }, name) => {
    await one.countDownLatch(name).trySetCount(2);
    const waiting = two.countDownLatch(name).await(PATIENT);
    waiting.catch(() => {});
    await one.countDownLatch(name).countDown();
    await one.countDownLatch(name).countDown();
    await waiting;
    await one.countDownLatch(name).getCount();
    await one.countDownLatch(name).delete();
  },
  "a time in the value": async ({ first, second, write }, name) => {
    const [ours, theirs] = [timestampLock(first, name, javaGetSet), timestampLock(second, name, javaGetSet)];
    await write("SET", ours.key, 1_600_000_000_000);
    const lease = await ours.acquire();
    // Whether the user may subscribe shows only after it has tried.
    const isWaiting = waits(name);
    const next = theirs.acquire(PATIENT);
    next.catch(() => {});
    await isWaiting;
    await lease.extend(20_000);
    await lease.release();
    const last: Lease = await next;
    await ours.inspect();
    await ours.forceRelease({ token: last.token });
  },
  "a unique value": async ({ first }, name) => {
    const lock = timestampLock(first, name, javaUuid);
    await lock.run((lease) => lease.extend(20_000));
  },
};

/** Resolves when a client waits or polls for the lock of that name. */
function waits(name: string): Promise<void> {
  return new Promise((resolve) => {
    const heard = (event: unknown): void => {
      if ((event as { readonly lockName: string }).lockName !== name) return;
      unsubscribe("holdfast:wait", heard);
      resolve();
    };
    subscribe("holdfast:wait", heard);
  });
}

function lost(error: unknown): void {
  if (!(error instanceof LockError) || error.code !== "ERR_LOCK_LEASE_LOST") throw error;
}

/** Runs all steps under names that begin with `shop:`. @returns the failures in any order */
export async function sharedTour(sharers: Sharers): Promise<Complaint[]> {
  const here = { ...sharers, one: redisson(sharers.first), two: redisson(sharers.second) };
  const walks = Object.entries(STEPS).map(async ([step, play]): Promise<Complaint[]> => {
    try {
      await play(here, `shop:${randomUUID()}`);
      return [];
    } catch (error) {
      return [{ step, error, missing: missingOf(error) }];
    }
  });
  return (await Promise.all(walks)).flat();
}

function missingOf(error: unknown): string | undefined {
  if (error instanceof StoreError) return error.missingPermission;
  return error instanceof LockError && error.cause !== undefined ? missingOf(error.cause) : undefined;
}

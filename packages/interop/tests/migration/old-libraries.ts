/**
 * The old side of each migration: the library itself if it is in JavaScript, otherwise a model of the commands it sends.
 */
import { randomUUID } from "node:crypto";
import { Verrou } from "@verrou/core";
import { redisStore } from "@verrou/core/drivers/redis";
import type { Redis } from "ioredis";
import { Mutex as SemaphoreMutex } from "redis-semaphore";
import Redlock from "redlock";
import type { JavaModel } from "../redisson/java-model.js";
import { phpSetGetPeer } from "../timestamp/peers.js";

const LEASE_MS = 30_000;

/** Tries once to lock a name. Resolves to its release, or undefined if it is locked. */
export type TryLock = () => Promise<(() => Promise<unknown>) | undefined>;

/** redlock 5. */
export function redlock(redis: Redis, name: string): TryLock {
  const locks = new Redlock([redis], { retryCount: 0 });
  return async () => {
    const lock = await locks.acquire([name], LEASE_MS).catch(() => undefined);
    return lock && (() => lock.release());
  };
}

/** redis-semaphore 5. Its key is `mutex:` and the name. */
export function redisSemaphore(redis: Redis, name: string): TryLock {
  return async () => {
    const mutex = new SemaphoreMutex(redis, name, {
      lockTimeout: LEASE_MS,
      refreshInterval: 0,
      acquireAttemptsLimit: 1,
    });
    return (await mutex.tryAcquire()) ? () => mutex.release() : undefined;
  };
}

/** @verrou/core with its Redis store. Its key is the name. */
export function verrou(redis: Redis, name: string): TryLock {
  const driver = redisStore({ connection: redis as never });
  const locks = new Verrou({ default: "redis", stores: { redis: { driver } } });
  return async () => {
    const lock = locks.createLock(name, LEASE_MS);
    return (await lock.acquireImmediately()) ? () => lock.release() : undefined;
  };
}

/** A model of a Java service with Redisson's RLock. */
export function redissonJava(java: JavaModel, name: string): TryLock {
  return async () => {
    const held = await java.acquire({ type: "lock", name }, { waitMs: 0, leaseMs: LEASE_MS });
    return held && (() => held.unlock());
  };
}

/**
 * A model of ShedLock's Redis provider: SET NX PX with the maximum run time, and DEL at the end. Its key has a prefix and an
 * environment.
 */
export function shedlock(redis: Redis, name: string): TryLock {
  const key = `job-lock:default:${name}`;
  return async () => {
    const value = `ADDED:${new Date().toISOString()}@${randomUUID()}`;
    if ((await redis.set(key, value, "PX", LEASE_MS, "NX")) !== "OK") return undefined;
    const script = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0";
    return () => redis.eval(script, 1, key, value);
  };
}

/** A model of a PHP service that writes the time at which the lock ends. */
export function phpTimestamp(redis: Redis, key: string): TryLock {
  const peer = phpSetGetPeer(redis, key);
  return async () => ((await peer.tryLock()) ? () => peer.unlock() : undefined);
}

/** A model of PostgreSQL's advisory locks, as sessions see them: pg_advisory_lock waits, pg_advisory_unlock frees. */
export class AdvisoryLocks {
  readonly #held = new Set<number>();
  readonly #waiting = new Map<number, (() => void)[]>();

  /** pg_try_advisory_lock */
  tryLock(key: number): boolean {
    if (this.#held.has(key)) return false;
    this.#held.add(key);
    return true;
  }

  /** pg_advisory_lock */
  async lock(key: number): Promise<void> {
    while (!this.tryLock(key)) {
      await new Promise<void>((resolve) => {
        this.#waiting.set(key, [...(this.#waiting.get(key) ?? []), resolve]);
      });
    }
  }

  /** pg_advisory_unlock */
  unlock(key: number): void {
    this.#held.delete(key);
    const waiting = this.#waiting.get(key) ?? [];
    this.#waiting.delete(key);
    for (const wake of waiting) wake();
  }
}

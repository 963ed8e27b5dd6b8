/** Checks when the next holder takes over from one that died, in server time. */
import type { Redis } from "ioredis";
import { expect } from "vitest";

/**
 * Longest time from the end of a lease to the next grant. The target is one second; the rest allows for a busy machine.
 * A waiter that instead waits until its own `waitMs` ends needs at least a minute.
 */
const TAKEOVER_MS = 5_000;
/** Largest difference between the expiry of a key and the server clock. */
const READING_MS = 50;

/** The server time. */
export async function serverMs(redis: Redis): Promise<number> {
  const [seconds, micros] = await redis.time();
  return Number(seconds) * 1_000 + Number(micros) / 1_000;
}

/** When the key expires, in server time. Returns the current time if the key does not exist. */
export async function endsAtMs(redis: Redis, key: string): Promise<number> {
  // One atomic script, because the time between two requests would distort the result.
  const found = await redis.eval("return {redis.call('TIME'), redis.call('PTTL', KEYS[1])}", 1, key);
  const [[seconds, micros], restMs] = found as [[string, string], number];
  return Number(seconds) * 1_000 + Number(micros) / 1_000 + Math.max(0, restMs);
}

/**
 * Asserts that the next holder was granted the lock after the lease of the dead one ended, and soon after.
 *
 * @param token    token of the next holder, which is the server time of its grant in microseconds
 * @param leaseMs  when the lease of the dead holder ends; `askedMs`  when the next holder began to wait, if later
 */
export function expectTakeover(token: number, { leaseMs, askedMs = 0 }: { leaseMs: number; askedMs?: number }): void {
  const beganMs = token / 1_000;
  expect(beganMs).toBeGreaterThan(leaseMs - READING_MS);
  expect(beganMs).toBeLessThan(Math.max(leaseMs, askedMs) + TAKEOVER_MS);
}

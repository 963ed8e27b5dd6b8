/** When the next one begins after a holder that died, by the clock of the server. */
import type { Redis } from "ioredis";
import { expect } from "vitest";

/**
 * How long after the end of a lease the next one has begun. Meant is a second; the rest is for a machine that does something else
 * as well. Whoever waits for the end of its own wait instead, a minute at the least, is far beyond it.
 */
const TAKEOVER_MS = 5_000;
/** What an expiry and the clock of a server may differ by. */
const READING_MS = 50;

/** The clock of the server. */
export async function serverMs(redis: Redis): Promise<number> {
  const [seconds, micros] = await redis.time();
  return Number(seconds) * 1_000 + Number(micros) / 1_000;
}

/** When the key ends, by the clock of the server; now if it is gone. */
export async function endsAtMs(redis: Redis, key: string): Promise<number> {
  // In one step: what lies between two of them would come on top of what is left.
  const found = await redis.eval("return {redis.call('TIME'), redis.call('PTTL', KEYS[1])}", 1, key);
  const [[seconds, micros], restMs] = found as [[string, string], number];
  return Number(seconds) * 1_000 + Number(micros) / 1_000 + Math.max(0, restMs);
}

/**
 * Not before the lease was over, and soon after.
 *
 * @param token    of the next one: the moment in which it was granted, in microseconds of the server
 * @param leaseMs  when the lease of the dead one is over; `askedMs`  since when the next one has waited, if that was later
 */
export function expectTakeover(token: number, { leaseMs, askedMs = 0 }: { leaseMs: number; askedMs?: number }): void {
  const beganMs = token / 1_000;
  expect(beganMs).toBeGreaterThan(leaseMs - READING_MS);
  expect(beganMs).toBeLessThan(Math.max(leaseMs, askedMs) + TAKEOVER_MS);
}

/** The permits code, on which semaphores and read-write locks are built, with lost, late and repeated requests. */
import { embedded, Keyspace } from "@holdfast/embedded";
import { beforeEach, describe, expect, test } from "vitest";
import { lockKeys } from "../../src/core/keys.js";
import type { Claim, Grant } from "../../src/core/protocol.js";
import { OwnClaim } from "../../src/core/protocol.js";
import { type PermitsProtocol, permitsProtocol } from "../../src/permits/protocol.js";

const TIMEOUT_MS = 1_000;
const BASE = "hf:semaphore:{a}";

let nowUs: number;
let keyspace: Keyspace;
let protocol: PermitsProtocol;
let last: number;

beforeEach(() => {
  nowUs = 1_763_711_220_000_000;
  last = 0;
  keyspace = new Keyspace({ clock: { nowUs: () => nowUs } });
  const store = embedded({ keyspace });
  const keys = lockKeys("hf", "semaphore", "a");
  protocol = permitsProtocol({ store, kind: "semaphore", name: "a", keys, inbox: "in:", declared: 5, numbered: 1_000 });
});

function pass(ms: number): void {
  nowUs += ms * 1_000;
}

function claimOf(amount: number, leaseMs = 1_000): Claim {
  last += 1;
  return new OwnClaim({ clientId: "client", number: last, leaseMs, amount, label: "", handOffMs: undefined });
}

async function grant(amount: number, leaseMs?: number): Promise<Grant> {
  const claim = claimOf(amount, leaseMs);
  const attempt = await protocol.acquire(claim, false, TIMEOUT_MS);
  if (attempt.outcome !== "granted") throw new Error(attempt.outcome);
  return { claim, token: attempt.token, slots: attempt.slots ?? [] };
}

async function used(): Promise<number> {
  return (await protocol.inspect(undefined, TIMEOUT_MS)).used;
}

async function remove(key: string): Promise<void> {
  await keyspace.eval("return redis.call('DEL', KEYS[1])", [key]);
}

describe("when the key of the holders is deleted or evicted", () => {
  test("a live holder keeps its permits, and a crashed one loses them one lease later", async () => {
    const [alive, dead] = [await grant(2), await grant(2)];
    await remove(`${BASE}:holders`);
    expect((await protocol.acquire(claimOf(2), false, TIMEOUT_MS)).outcome).toBe("refused");
    for (let beat = 0; beat < 6; beat += 1) {
      pass(300);
      expect(await protocol.extend(alive, 1_000, TIMEOUT_MS)).toBe("extended");
    }
    for (const { key, leftMs } of keyspace.dump()) expect(leftMs, key).toBeGreaterThan(1_000);
    const next = await grant(3);
    expect(next.slots).toEqual([2, 3, 4]);
    expect(await protocol.extend(dead, 1_000, TIMEOUT_MS)).toBe("claimed");
    expect(await used()).toBe(5);
    expect(await protocol.release(alive, TIMEOUT_MS)).toBe("released");
    expect(await protocol.release(next, TIMEOUT_MS)).toBe("released");
    expect(await used()).toBe(0);
  });

  test("a later grant does not hide the permits of earlier holders", async () => {
    const before = await grant(3);
    await remove(`${BASE}:holders`);
    const meanwhile = await grant(2);
    expect((await protocol.acquire(claimOf(1), false, TIMEOUT_MS)).outcome).toBe("refused");
    pass(600);
    expect(await protocol.extend(meanwhile, 5_000, TIMEOUT_MS)).toBe("extended");
    pass(1_100);
    expect((await grant(3)).slots).toEqual([0, 1, 2]);
    expect(await protocol.release(before, TIMEOUT_MS)).toBe("claimed");
    expect(await used()).toBe(5);
  });
});

test("when the key of the free slots is deleted, new grants get unused slot numbers", async () => {
  const [low, high] = [await grant(2), await grant(1)];
  await protocol.release(low, TIMEOUT_MS);
  await remove(`${BASE}:slots`);
  const next = await grant(2);
  expect(high.slots).toEqual([2]);
  expect(next.slots).toEqual([3, 4]);
});

test("when the state is deleted, the server reports that it has forgotten the lease", async () => {
  const held = await grant(2);
  await remove(BASE);
  await remove(`${BASE}:fence`);
  expect(await protocol.extend(held, 1_000, TIMEOUT_MS)).toBe("forgotten");
  expect((await grant(5)).token).toBeGreaterThanOrEqual(held.token);
  expect(await protocol.release(held, TIMEOUT_MS)).not.toBe("released");
  expect(await used()).toBe(5);
});

describe("a change of weight", () => {
  test("is idempotent, and an earlier request that arrives late changes nothing", async () => {
    const held = await grant(5);
    expect(await protocol.reweigh(held, 1, 1, TIMEOUT_MS)).toBe(held.token);
    const more = await protocol.reweigh(held, 5, 2, TIMEOUT_MS);
    expect(more).toBeGreaterThan(held.token);
    expect(await protocol.reweigh(held, 5, 2, TIMEOUT_MS)).toBe(more);
    // A delayed copy of the first request must not free permits.
    expect(await protocol.reweigh(held, 1, 1, TIMEOUT_MS)).toBeNull();
    expect(await used()).toBe(5);
  });

  test("whose reply is lost breaks neither the renewal nor the release", async () => {
    const held = await grant(1);
    const latest = await protocol.reweigh(held, 5, 1, TIMEOUT_MS);
    expect(await protocol.extend(held, 2_000, TIMEOUT_MS)).toBe("extended");
    const stranger = { ...held, token: held.token - 1 };
    expect(await protocol.extend(stranger, 2_000, TIMEOUT_MS)).toBe("claimed");
    expect(await protocol.release(held, TIMEOUT_MS)).toBe("released");
    expect((await grant(5)).token).toBeGreaterThan(latest as number);
  });
});

test("an expired lease cannot be renewed, even if no other client took its permits", async () => {
  const held = await grant(1, 100);
  pass(101);
  expect(await protocol.extend(held, 1_000, TIMEOUT_MS)).toBe("unclaimed");
  expect(await protocol.release(held, TIMEOUT_MS)).toBe("unclaimed");
});

test("a lease of ten thousand permits is acquired and released without slot numbers", async () => {
  const store = embedded({ keyspace });
  const place = { store, kind: "semaphore", name: "b", keys: lockKeys("hf", "semaphore", "b"), inbox: "in:" };
  const big = permitsProtocol({ ...place, declared: 1_000_000, numbered: 1_000 });
  const claim = claimOf(10_000);
  const attempt = await big.acquire(claim, false, TIMEOUT_MS);
  if (attempt.outcome !== "granted") throw new Error(attempt.outcome);
  expect(attempt.slots).toEqual([]);
  expect((await big.inspect(undefined, TIMEOUT_MS)).used).toBe(10_000);
  expect(await big.release({ claim, token: attempt.token, slots: [] }, TIMEOUT_MS)).toBe("released");
});

test("an idle semaphore keeps its capacity for minutes, and a resized one for a month", async () => {
  await protocol.release(await grant(1), TIMEOUT_MS);
  pass(9 * 60_000);
  expect((await protocol.inspect(undefined, TIMEOUT_MS)).capacity).toBe(5);
  pass(60 * 60_000);
  expect((await protocol.inspect(undefined, TIMEOUT_MS)).capacity).toBeUndefined();
  await protocol.resize(8, "request", TIMEOUT_MS);
  pass(29 * 24 * 60 * 60_000);
  expect((await protocol.inspect(undefined, TIMEOUT_MS)).capacity).toBe(8);
  expect(keyspace.dump().every(({ leftMs }) => leftMs > 0)).toBe(true);
});

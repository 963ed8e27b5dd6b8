/** A grant by message lasts 3 s until its holder confirms it (docs/adr/130). */
import { beforeEach, describe, expect, test } from "vitest";
import type { Lease } from "../../src/core/lease.js";
import type { AcquireOptions } from "../../src/core/options.js";
import { Answer, lost, NOW_US, never, ScriptedLock, watch } from "./scripted-lock.js";

/** What is left of a lease of 3 s and of one of 30 s after the drift allowance. */
const SHORT_MS = 3_000 * 0.99 - 2;
const FULL_MS = 30_000 * 0.99 - 2;

let world: ScriptedLock;
let startMs: number;

beforeEach(async () => {
  world = new ScriptedLock({ isHandedOff: true, takesTurns: true });
  await world.session.clientInbox.open(1_000);
  startMs = world.runtime.monotonicMs();
  world.answers.acquire = async () => ({
    outcome: "waiting",
    restMs: 2_000,
    nowUs: NOW_US + (world.runtime.monotonicMs() - startMs) * 1_000,
  });
});

/** The server grants the newest claim with a message. */
async function push(token = 99): Promise<void> {
  const us = NOW_US + (world.runtime.monotonicMs() - startMs) * 1_000;
  world.store.push(`+${world.lastNumber} ${token} ${us}`);
  await world.runtime.advance(0);
}

async function grantTo(options: AcquireOptions = {}): Promise<Lease> {
  const acquiring = world.lock.acquire({ waitMs: Infinity, ...options });
  await world.runtime.advance(1);
  await push();
  return acquiring;
}

/** A first, very short hold. After it, Holdfast expects short holds of this lock. */
async function holdBriefly(): Promise<void> {
  await (await grantTo()).release();
  world.sent.length = 0;
}

function extendsAt(): number[] {
  return world.timesOf("extend", world.runtime.monotonicMs());
}

describe("a grant of a lock with unknown hold times", () => {
  test("is confirmed before acquire returns, and then lasts the full lease", async () => {
    const lease = await grantTo();
    expect(extendsAt()).toEqual([0]);
    expect(lease.validForMs()).toBe(FULL_MS);
  });

  test("is confirmed first if the last hold took 250 ms", async () => {
    const first = await grantTo();
    await world.runtime.advance(250);
    await first.release();
    world.sent.length = 0;
    expect((await grantTo()).validForMs()).toBe(FULL_MS);
    expect(world.sentOf("extend")).toHaveLength(1);
  });

  test("whose confirmation fails is requested again, and that reply grants the lock", async () => {
    world.answers.extend = () => Promise.reject(lost());
    const acquiring = watch(world.lock.acquire({ waitMs: Infinity }));
    await world.runtime.advance(1);
    world.answers.acquire = async () => ({ outcome: "granted", token: 99 });
    await push();
    await world.runtime.advance(100);
    expect(acquiring.value?.validForMs()).toBeGreaterThan(20_000);
  });

  test("is void if a force-release arrives before the reply to its confirmation", async () => {
    const confirmed = new Answer<"extended">();
    world.answers.extend = () => confirmed.promise;
    const acquiring = watch(world.lock.acquire({ waitMs: Infinity }));
    await world.runtime.advance(1);
    await push();
    world.store.push(`-${world.lastNumber}`);
    confirmed.resolve("extended");
    await world.runtime.advance(10);
    expect(acquiring.state).toBe("pending");
    world.answers.extend = async () => "extended";
    await push(100);
    expect(acquiring.value?.token).toBe(100);
  });

  test("whose confirmation is refused sends the caller back to wait", async () => {
    world.answers.extend = async () => "claimed";
    const acquiring = watch(world.lock.acquire({ waitMs: Infinity }));
    await world.runtime.advance(1);
    const before = world.sentOf("acquire").length;
    await push();
    expect(acquiring.state).toBe("pending");
    expect(world.sentOf("acquire")).toHaveLength(before + 1);
  });
});

describe("a grant of a lock whose last hold was short", () => {
  beforeEach(holdBriefly);

  test("needs no request except the release if this hold is short too", async () => {
    const lease = await grantTo();
    await world.runtime.advance(200);
    await lease.release();
    expect(world.sent.map(({ verb }) => verb)).toEqual(["acquire", "release"]);
  });

  test("is valid for the short lease until it is confirmed after 250 ms", async () => {
    const lease = await grantTo();
    expect(lease.validForMs()).toBeLessThanOrEqual(SHORT_MS);
    expect(lease.validForMs()).toBeGreaterThan(SHORT_MS - 10);
    await world.runtime.advance(240);
    expect(world.sentOf("extend")).toEqual([]);
    await world.runtime.advance(70);
    expect(world.sentOf("extend")).toHaveLength(1);
    expect(lease.validForMs()).toBeGreaterThan(FULL_MS - 100);
    await world.runtime.advance(9_000);
    expect(world.sentOf("extend")).toHaveLength(1);
    await world.runtime.advance(1_500);
    expect(world.sentOf("extend")).toHaveLength(2);
  });

  test("retries an unanswered confirmation several times before the short lease ends", async () => {
    const lease = await grantTo();
    world.answers.extend = () => never();
    await world.runtime.advance(2_900);
    expect(world.sentOf("extend").length).toBeGreaterThanOrEqual(4);
    expect(lease.validForMs()).toBeGreaterThan(0);
    world.answers.extend = async () => "extended";
    await world.runtime.advance(0);
    expect(lease.signal.aborted).toBe(false);
  });

  test("that is never confirmed is lost in time", async () => {
    const lease = await grantTo();
    world.answers.extend = () => Promise.reject(lost());
    const { signal } = lease;
    await world.runtime.advance(SHORT_MS + 1);
    expect(signal.aborted).toBe(true);
    expect(lease.validForMs()).toBe(0);
  });

  test("with `renew: false` is confirmed before acquire returns, and only once", async () => {
    const lease = await grantTo({ renew: false });
    expect(lease.validForMs()).toBe(FULL_MS);
    await world.runtime.advance(20_000);
    expect(world.sentOf("extend")).toHaveLength(1);
  });

  test("is confirmed by the holder's `extend`", async () => {
    const lease = await grantTo();
    await lease.extend(60_000);
    expect(lease.validForMs()).toBeGreaterThan(59_000);
    await world.runtime.advance(2_000);
    expect(world.sentOf("extend")).toHaveLength(1);
  });

  test("is confirmed by `export` so that the lease has its full length", async () => {
    const lease = await grantTo();
    lease.export();
    expect(world.sentOf("extend")).toHaveLength(1);
  });

  test("for a lease of 3 s or less is confirmed by the first renewal", async () => {
    const lease = await grantTo({ leaseMs: 1_500 });
    await world.runtime.advance(490);
    expect(world.sentOf("extend")).toEqual([]);
    await world.runtime.advance(20);
    expect(world.sentOf("extend")).toHaveLength(1);
    expect(lease.validForMs()).toBeGreaterThan(1_400);
  });
});

describe("callers that share a claim", () => {
  beforeEach(holdBriefly);

  test("need no confirmation while each hold is short", async () => {
    const callers = Array.from({ length: 5 }, () => world.lock.acquire({ waitMs: Infinity }));
    await world.runtime.advance(1);
    await push();
    for (const caller of callers) {
      await (await caller).release();
      await world.runtime.advance(1);
    }
    expect(world.sentOf("extend")).toEqual([]);
    await world.runtime.advance(1_000);
    expect(world.sentOf("extend")).toEqual([]);
  });

  test("confirm it 250 ms after the grant if a hold takes longer", async () => {
    const callers = Array.from({ length: 3 }, () => watch(world.lock.acquire({ waitMs: Infinity })));
    await world.runtime.advance(1);
    await push();
    await world.runtime.advance(10);
    await callers[0]?.value?.release();
    await world.runtime.advance(0);
    const second = callers[1]?.value;
    await world.runtime.advance(300);
    expect(world.sentOf("extend")).toHaveLength(1);
    expect(second?.validForMs()).toBeGreaterThan(FULL_MS - 400);
  });

  test("confirm it even if close with a grace ends the batch first", async () => {
    const callers = Array.from({ length: 3 }, () => watch(world.lock.acquire({ waitMs: Infinity })));
    await world.runtime.advance(1);
    await push();
    const closing = watch(world.session.close(60_000));
    await world.runtime.advance(9_000);
    expect(callers.map(({ state }) => state)).toEqual(["fulfilled", "rejected", "rejected"]);
    expect(callers[0]?.value?.validForMs()).toBeGreaterThan(20_000);
    expect(world.sentOf("extend")).toHaveLength(1);
    await callers[0]?.value?.release();
    await world.runtime.advance(0);
    expect(closing.value).toMatchObject({ unsettled: [] });
    expect(world.runtime.running()).toBe(0);
  });

  test("are not served once half of the short lease is over", async () => {
    const first = world.lock.acquire({ waitMs: Infinity });
    const second = watch(world.lock.acquire({ waitMs: Infinity }));
    await world.runtime.advance(1);
    await push();
    // The host slept, which only the wall clock shows. Half of 3 s is over, but not half of 30 s.
    world.runtime.stepWall(1_600);
    await (await first).release();
    await world.runtime.advance(0);
    expect(world.sentOf("release")).toHaveLength(1);
    expect(second.state).toBe("pending");
  });

  test("confirm it when a lease with `renew: false` begins", async () => {
    const first = world.lock.acquire({ waitMs: Infinity });
    const second = watch(world.lock.acquire({ waitMs: Infinity, renew: false }));
    await world.runtime.advance(1);
    await push();
    await (await first).release();
    await world.runtime.advance(0);
    expect(world.sentOf("extend")).toHaveLength(1);
    expect(second.value?.validForMs()).toBeGreaterThan(FULL_MS - 100);
    await world.runtime.advance(20_000);
    expect(world.sentOf("extend")).toHaveLength(1);
  });
});

test("a grant reply that arrives after a force-release message is requested again", async () => {
  const answer = new Answer<{ outcome: "granted"; token: number }>();
  const waits = world.answers.acquire;
  world.answers.acquire = () => answer.promise;
  const acquiring = watch(world.lock.acquire({ waitMs: Infinity, renew: false }));
  await world.runtime.advance(1);
  world.answers.acquire = waits;
  world.store.push(`-${world.lastNumber}`);
  answer.resolve({ outcome: "granted", token: 7 });
  await world.runtime.advance(10);
  expect(acquiring.state).toBe("pending");
  await push(8);
  expect(acquiring.value?.token).toBe(8);
});

test("a grant by reply lasts the full lease", async () => {
  world.answers.acquire = async () => ({ outcome: "granted", token: 7 });
  const lease = await world.lock.acquire();
  expect(lease.validForMs()).toBe(FULL_MS);
  expect(world.sentOf("extend")).toEqual([]);
});

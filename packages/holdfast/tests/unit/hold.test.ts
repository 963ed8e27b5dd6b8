/** Renewal and loss of a lease on a manual clock. Holdfast trusts a lease of 30 000 ms for 29 698 ms. */
import { beforeEach, describe, expect, test } from "vitest";
import { LeaseLostError, StoreError } from "../../src/core/errors.js";
import type { Lease } from "../../src/core/lease.js";
import { Answer, lost, never, ScriptedLock, watch } from "./scripted-lock.js";

const LEASE_MS = 30_000;
const TRUSTED_MS = 29_698;

let world: ScriptedLock;
let startMs: number;
beforeEach(() => {
  world = new ScriptedLock();
  startMs = world.runtime.monotonicMs();
});

/** Counts the abort events of a lease's signal and records the time of the first. */
function aborts(lease: Lease): { count: number; atMs: number | undefined } {
  const seen: { count: number; atMs: number | undefined } = { count: 0, atMs: undefined };
  lease.signal.addEventListener("abort", () => {
    seen.count += 1;
    seen.atMs ??= world.runtime.monotonicMs() - startMs;
  });
  return seen;
}

function reasonOf(lease: Lease): unknown {
  return lease.signal.aborted ? (lease.signal.reason as LeaseLostError).reason : "held";
}

describe("renewal", () => {
  test("is sent every third of the lease and at no other time", async () => {
    const lease = await world.lock.acquire();
    await world.runtime.advance(50_000);
    expect(world.timesOf("extend", startMs)).toEqual([10_000, 20_000, 30_000, 40_000, 50_000]);
    expect(reasonOf(lease)).toBe("held");
    expect(world.sentOf("acquire")).toHaveLength(1);
    await lease.release();
  });

  test("extends validity from the moment it was sent", async () => {
    const answer = new Answer<"extended">();
    world.answers.extend = () => answer.promise;
    const lease = await world.lock.acquire();
    await world.runtime.advance(10_000);
    await world.runtime.advance(1_500);
    answer.resolve("extended");
    await world.runtime.advance(0);
    expect(lease.validForMs()).toBe(TRUSTED_MS - 1_500);
  });

  test("is scheduled from the moment the acquire was sent, not from its reply", async () => {
    const answer = new Answer<{ outcome: "granted"; token: number }>();
    world.answers.acquire = () => answer.promise;
    const acquiring = world.lock.acquire();
    await world.runtime.advance(1_200);
    answer.resolve({ outcome: "granted", token: 7 });
    const lease = await acquiring;
    expect(lease.validForMs()).toBe(TRUSTED_MS - 1_200);
    await world.runtime.advance(8_800);
    expect(world.timesOf("extend", startMs)).toEqual([10_000]);
  });

  test("is retried with growing pauses while the lease is valid, then the loss is reported once", async () => {
    world.answers.extend = () => Promise.reject(lost());
    const lease = await world.lock.acquire();
    const seen = aborts(lease);
    await world.runtime.advance(TRUSTED_MS - 1);
    expect(reasonOf(lease)).toBe("held");
    const times = world.timesOf("extend", startMs);
    expect(times.slice(0, 6)).toEqual([10_000, 10_050, 10_150, 10_350, 10_750, 11_550]);
    expect(times.at(-1)).toBeGreaterThan(TRUSTED_MS - 1_001);
    expect(times.length).toBeLessThan(30);
    await world.runtime.advance(1);
    expect(seen).toEqual({ count: 1, atMs: TRUSTED_MS });
    expect(reasonOf(lease)).toBe("expired");
    await world.runtime.advance(120_000);
    expect(seen.count).toBe(1);
    expect(world.sentOf("extend")).toHaveLength(times.length);
  });

  test("that succeeds after many failures keeps the lease and schedules the next a third later", async () => {
    let failures = 12;
    world.answers.extend = () => {
      failures -= 1;
      return failures >= 0 ? Promise.reject(lost()) : Promise.resolve("extended");
    };
    const lease = await world.lock.acquire();
    await world.runtime.advance(60_000);
    expect(reasonOf(lease)).toBe("held");
    const [last = 0, before = 0] = world.timesOf("extend", startMs).toReversed();
    expect(last - before).toBe(10_000);
  });

  test("that hangs is tried at least three times, and the loss is reported in time", async () => {
    world.answers.extend = () => never();
    for (const leaseMs of [100, 300, LEASE_MS]) {
      world = new ScriptedLock();
      startMs = world.runtime.monotonicMs();
      world.answers.extend = () => never();
      const lease = await world.lock.acquire({ leaseMs });
      const seen = aborts(lease);
      await world.runtime.advance(leaseMs);
      expect(world.sentOf("extend").length).toBeGreaterThanOrEqual(3);
      expect(seen.count).toBe(1);
      expect(seen.atMs).toBeLessThanOrEqual(Math.ceil(leaseMs * 0.99 - 2));
    }
  });

  test("in flight during the release schedules nothing, whatever the reply", async () => {
    for (const end of ["extended", "claimed", "fails"] as const) {
      const answer = new Answer<"extended" | "claimed">();
      world = new ScriptedLock();
      world.answers.extend = () => answer.promise;
      const lease = await world.lock.acquire();
      await world.runtime.advance(10_000);
      expect(await lease.release()).toBe("released");
      if (end === "fails") answer.reject(lost());
      else answer.resolve(end);
      await world.runtime.advance(100_000);
      expect(world.sentOf("extend")).toHaveLength(1);
      expect(world.runtime.running()).toBe(0);
      expect(reasonOf(lease)).toBe("held");
    }
  });

  test("is retried immediately when the connection is back after a failure, but not without one", async () => {
    const lease = await world.lock.acquire();
    world.store.reconnect("commands");
    await world.runtime.advance(1);
    expect(world.sentOf("extend")).toEqual([]);
    world.answers.extend = () => Promise.reject(lost());
    await world.runtime.advance(13_000);
    const failed = world.sentOf("extend").length;
    world.answers.extend = async () => "extended";
    world.store.reconnect("commands");
    await world.runtime.advance(1);
    expect(world.sentOf("extend")).toHaveLength(failed + 1);
    expect(lease.validForMs()).toBeGreaterThanOrEqual(TRUSTED_MS - 1);
  });

  test("is sent within a second after the inbox reconnects, because a force-release message may be lost", async () => {
    const lease = await world.lock.acquire();
    const unrenewed = await world.lock.acquire({ renew: false });
    await world.runtime.advance(3_000);
    for (let again = 0; again < 10; again += 1) world.store.reconnect("inbox");
    await world.runtime.advance(1_001);
    expect(world.sentOf("extend")).toHaveLength(1);
    lease.assertHeld();
    world.answers.extend = async () => "claimed";
    world.store.reconnect("inbox");
    await world.runtime.advance(1_001);
    expect(world.sentOf("extend")).toHaveLength(2);
    expect(lease.signal.aborted).toBe(true);
    unrenewed.assertHeld();
  });

  test("in flight while the inbox reconnects is followed by another", async () => {
    const lease = await world.lock.acquire();
    const first = new Answer<"extended">();
    world.answers.extend = () => first.promise;
    await world.runtime.advance(10_000);
    // The lock is force-released after this renewal ran. Its reply arrives after the inbox reconnects.
    world.store.reconnect("inbox");
    world.answers.extend = async () => "claimed";
    first.resolve("extended");
    await world.runtime.advance(1_001);
    expect(world.sentOf("extend")).toHaveLength(2);
    expect(lease.signal.aborted).toBe(true);
  });

  test("that rejects with a non-error counts as a failure", async () => {
    for (const thrown of [undefined, null, "text", 7, Object.create(null)]) {
      world = new ScriptedLock();
      startMs = world.runtime.monotonicMs();
      world.answers.extend = () => Promise.reject(thrown);
      const lease = await world.lock.acquire();
      const seen = aborts(lease);
      await world.runtime.advance(LEASE_MS);
      expect(seen).toEqual({ count: 1, atMs: TRUSTED_MS });
    }
  });

  test("is not sent with `renew: false`", async () => {
    const lease = await world.lock.acquire({ renew: false });
    const seen = aborts(lease);
    await world.runtime.advance(60_000);
    expect(world.sentOf("extend")).toEqual([]);
    expect(seen).toEqual({ count: 1, atMs: TRUSTED_MS });
  });

  test("neither keeps the process alive nor leaves a timer behind", async () => {
    const lease = await world.lock.acquire();
    expect(world.runtime.running(true)).toBe(0);
    await world.runtime.advance(35_000);
    await lease.release();
    await world.runtime.advance(20_000);
    expect(world.runtime.running()).toBe(0);
  });

  test("works for a lease as short as 100 ms", async () => {
    const lease = await world.lock.acquire({ leaseMs: 100 });
    await world.runtime.advance(10_000);
    expect(reasonOf(lease)).toBe("held");
    expect(world.sentOf("extend").length).toBeLessThanOrEqual(300);
  });
});

describe("loss", () => {
  test.each([
    ["unclaimed", "server-lost"],
    ["forgotten", "server-lost"],
    ["claimed", "server-lost"],
  ] as const)("a renewal answered %s before the lease ends is reported as %s", async (answer, reason) => {
    world.answers.extend = async () => answer;
    const lease = await world.lock.acquire();
    const seen = aborts(lease);
    await world.runtime.advance(60_000);
    expect(seen).toEqual({ count: 1, atMs: 10_000 });
    expect(reasonOf(lease)).toBe(reason);
    expect(() => lease.assertHeld()).toThrow(LeaseLostError);
    expect(world.sentOf("extend")).toHaveLength(1);
  });

  test("after a process pause, the first call reports the loss before any timer runs", async () => {
    const lease = await world.lock.acquire();
    const seen = aborts(lease);
    world.runtime.block(TRUSTED_MS - 1);
    expect(lease.validForMs()).toBe(1);
    lease.assertHeld();
    world.runtime.block(1);
    expect(() => lease.assertHeld()).toThrow("not renewed in time");
    expect(lease.validForMs()).toBe(0);
    expect(seen.count).toBe(1);
  });

  test("a lease ends while the host is suspended, even if the monotonic clock stops", async () => {
    const lease = await world.lock.acquire();
    await world.runtime.advance(1_000);
    world.runtime.stepWall(3_600_000);
    expect(() => lease.assertHeld()).toThrow(LeaseLostError);
    expect(reasonOf(lease)).toBe("expired");
  });

  test("setting the wall clock back does not lengthen a lease", async () => {
    const lease = await world.lock.acquire({ renew: false });
    const seen = aborts(lease);
    world.runtime.stepWall(-3_600_000);
    expect(lease.validForMs()).toBe(TRUSTED_MS);
    await world.runtime.advance(TRUSTED_MS);
    expect(seen).toEqual({ count: 1, atMs: TRUSTED_MS });
  });

  test("a suspended host loses its lease, even if its clock was set back before a renewal", async () => {
    const lease = await world.lock.acquire();
    world.runtime.stepWall(-3_600_000);
    await world.runtime.advance(15_000);
    expect(world.sentOf("extend")).toHaveLength(1);
    world.runtime.stepWall(60_000);
    expect(lease.validForMs()).toBe(0);
  });

  test("a small forward step of the wall clock shortens the lease until the next renewal", async () => {
    const lease = await world.lock.acquire();
    world.runtime.stepWall(5_000);
    expect(lease.validForMs()).toBe(TRUSTED_MS - 5_000);
    await world.runtime.advance(10_000);
    expect(lease.validForMs()).toBe(TRUSTED_MS);
    expect(reasonOf(lease)).toBe("held");
  });

  test("maxHoldMs ends the hold at exactly that time despite renewal", async () => {
    const lease = await world.lock.acquire({ maxHoldMs: 45_000 });
    const seen = aborts(lease);
    await world.runtime.advance(44_999);
    expect(reasonOf(lease)).toBe("held");
    await world.runtime.advance(100_000);
    expect(seen).toEqual({ count: 1, atMs: 45_000 });
    expect(reasonOf(lease)).toBe("max-hold");
    expect(world.timesOf("extend", startMs)).toEqual([10_000, 20_000, 30_000, 40_000]);
  });

  test("a force-release is reported immediately and once, and ends renewal", async () => {
    const lease = await world.lock.acquire();
    const seen = aborts(lease);
    const number = world.lastNumber;
    world.store.push(`-${number}`);
    world.store.push(`-${number}`);
    await world.runtime.advance(60_000);
    expect(seen).toEqual({ count: 1, atMs: 0 });
    expect(reasonOf(lease)).toBe("force-released");
    expect(world.sentOf("extend")).toEqual([]);
  });

  test("a signal first read after the loss is already aborted", async () => {
    const lease = await world.lock.acquire({ renew: false });
    await world.runtime.advance(LEASE_MS);
    expect(lease.signal.aborted).toBe(true);
    expect(lease.signal.reason).toBeInstanceOf(LeaseLostError);
  });
});

describe("extend", () => {
  test("never shortens a lease", async () => {
    const lease = await world.lock.acquire({ renew: false });
    await lease.extend(100);
    expect(lease.validForMs()).toBe(TRUSTED_MS);
  });

  test("sets the interval of later renewals", async () => {
    const lease = await world.lock.acquire();
    await lease.extend(60_000);
    await world.runtime.advance(45_000);
    expect(world.timesOf("extend", startMs)).toEqual([0, 20_000, 40_000]);
    await lease.release();
  });

  test("with a shorter length still renews in time", async () => {
    const lease = await world.lock.acquire();
    await lease.extend(300);
    await world.runtime.advance(60_000);
    expect(reasonOf(lease)).toBe("held");
    await lease.release();
  });

  test("rejects an invalid length and sends nothing", async () => {
    const lease = await world.lock.acquire();
    for (const wrong of [99, 100.5, Number.NaN, Infinity, -1]) {
      await expect(lease.extend(wrong)).rejects.toThrow(RangeError);
    }
    await expect(lease.extend("1000" as never)).rejects.toThrow(TypeError);
    expect(world.sentOf("extend")).toEqual([]);
  });

  test("with an unknown outcome keeps the old end", async () => {
    const lease = await world.lock.acquire({ renew: false });
    world.answers.extend = () => Promise.reject(lost());
    await expect(lease.extend(60_000)).rejects.toThrow(StoreError);
    expect(lease.validForMs()).toBe(TRUSTED_MS);
  });

  test("of an expired lease sends nothing", async () => {
    const lease = await world.lock.acquire({ renew: false });
    world.runtime.block(LEASE_MS);
    await expect(lease.extend(1_000)).rejects.toThrow(LeaseLostError);
    expect(world.sentOf("extend")).toEqual([]);
  });

  test("confirmed after the loss rejects with LeaseLostError", async () => {
    const answer = new Answer<"extended">();
    world.answers.extend = () => answer.promise;
    const lease = await world.lock.acquire({ renew: false });
    await world.runtime.advance(TRUSTED_MS - 10);
    const extending = watch(lease.extend(LEASE_MS));
    await world.runtime.advance(20);
    expect(reasonOf(lease)).toBe("expired");
    answer.resolve("extended");
    await world.runtime.advance(0);
    expect(extending.state).toBe("rejected");
    expect(extending.error).toBeInstanceOf(LeaseLostError);
    expect(lease.validForMs()).toBe(0);
  });
});

describe("a store that fails immediately", () => {
  test("receives a bounded number of renewals while a lease is held", async () => {
    world.answers.extend = () => Promise.reject(lost(false));
    const lease = await world.lock.acquire({ leaseMs: 600_000 });
    await world.runtime.advance(600_000);
    expect(reasonOf(lease)).toBe("expired");
    expect(world.sentOf("extend").length).toBeLessThan(410);
  });
});

/** How a release handles failures, and how an abandoned claim is cleaned up. */
import { beforeEach, describe, expect, test } from "vitest";
import { StoreError } from "../../src/core/errors.js";
import type { Claim } from "../../src/core/protocol.js";
import { cleanUp } from "../../src/core/release.js";
import { settle } from "./manual-runtime.js";
import { Answer, lost, NOW_US, ScriptedLock, watch } from "./scripted-lock.js";

const COMMAND_TIMEOUT_MS = 2_000;

let world: ScriptedLock;
let startMs: number;
beforeEach(() => {
  world = new ScriptedLock();
  startMs = world.runtime.monotonicMs();
});

function hopeless(): StoreError {
  return new StoreError("scripted", { mayHaveRun: false, transient: false, cause: new Error("WRONGTYPE") });
}

describe("a release", () => {
  test("is a loss if the first reply was lost and the second says `forgotten`", async () => {
    const lease = await world.lock.acquire();
    let tries = 0;
    world.answers.release = async () => {
      tries += 1;
      if (tries === 1) throw lost();
      return "forgotten";
    };
    const releasing = watch(lease.release());
    await world.runtime.advance(100);
    expect(releasing.error).toMatchObject({ code: "ERR_LOCK_LEASE_LOST", reason: "server-lost" });
  });

  test("of a lock granted to someone else is a loss, even if the reclaim has no reply", async () => {
    const lease = await world.lock.acquire();
    world.answers.release = async () => "claimed";
    Object.assign(world.protocol, { reclaim: () => Promise.reject(lost()) });
    const releasing = watch(lease.release());
    await world.runtime.advance(200);
    expect(releasing.error).toMatchObject({ code: "ERR_LOCK_LEASE_LOST" });
    expect(world.sentOf("leave").length, "a request that puts it back late is undone").toBeGreaterThan(0);
  });

  test("in flight while a renewal reports a loss is not undone by a reclaim", async () => {
    let putBack = 0;
    const reclaim = async (): Promise<"reclaimed"> => {
      putBack += 1;
      return "reclaimed";
    };
    Object.assign(world.protocol, { reclaim });
    const lease = await world.lock.acquire({ leaseMs: 900 });
    const renewal = new Answer<"unclaimed">();
    world.answers.extend = () => renewal.promise;
    await world.runtime.advance(310);
    expect(await lease.release()).toBe("released");
    renewal.resolve("unclaimed");
    await world.runtime.advance(10);
    expect(putBack).toBe(0);
  });

  test("reports `not held` if the first attempt cannot have run", async () => {
    const lease = await world.lock.acquire();
    let tries = 0;
    world.answers.release = async () => {
      tries += 1;
      if (tries === 1) throw lost(false);
      return "unclaimed";
    };
    const releasing = watch(lease.release());
    await world.runtime.advance(100);
    expect(releasing).toMatchObject({ state: "fulfilled", value: "expired-unclaimed" });
  });

  test("that keeps failing is retried for two command timeouts and keeps the process alive until then", async () => {
    const lease = await world.lock.acquire();
    world.answers.release = () => Promise.reject(lost(false));
    world.answers.leave = () => Promise.reject(lost());
    const releasing = watch(lease.release());
    await world.runtime.advance(2 * COMMAND_TIMEOUT_MS - 1);
    expect(releasing.state).toBe("pending");
    expect(world.runtime.running(true)).toBe(1);
    await world.runtime.advance(1);
    expect(releasing.state).toBe("rejected");
    expect(world.timesOf("release", startMs).at(-1)).toBe(2 * COMMAND_TIMEOUT_MS);
    expect(world.runtime.running(true)).toBe(0);
  });

  test("without a reply sends leaves even after one was answered, because a copy may still run", async () => {
    const lease = await world.lock.acquire();
    world.answers.release = () => Promise.reject(lost());
    const releasing = watch(lease.release());
    await world.runtime.advance(40_000);
    expect(releasing.state).toBe("rejected");
    expect(world.sentOf("leave").length).toBeGreaterThan(1);
    expect(world.runtime.running()).toBe(0);
  });

  test("sends leaves for an earlier unanswered acquire for as long as its lease could last", async () => {
    let tries = 0;
    world.answers.acquire = async () => {
      tries += 1;
      if (tries === 1) throw lost();
      return { outcome: "granted", token: 7 };
    };
    const acquiring = watch(world.lock.acquire());
    await world.runtime.advance(1_000);
    expect(await acquiring.value?.release()).toBe("released");
    const releasedAtMs = world.runtime.monotonicMs() - startMs;
    await world.runtime.advance(60_000);
    const leaves = world.timesOf("leave", startMs);
    expect(leaves.length).toBeGreaterThan(1);
    expect(leaves.at(-1)).toBeGreaterThanOrEqual(releasedAtMs + 30_000);
    expect(world.runtime.running()).toBe(0);
  });

  test("sends no leave if all requests of the lease were answered", async () => {
    const lease = await world.lock.acquire();
    await lease.release();
    await world.runtime.advance(60_000);
    expect(world.sentOf("leave")).toEqual([]);
  });
});

describe("a cleanup", () => {
  const HOUR_MS = 3_600_000;

  function claim(leaseMs: number): Claim {
    return world.session.newClaim("scripted", leaseMs, 1, "");
  }

  function leaveFor(one: Claim, isUncertain: boolean): Promise<boolean> {
    return cleanUp(world.session, world.protocol, one, isUncertain, COMMAND_TIMEOUT_MS);
  }

  test("stops after a minute if the server rejects it permanently, but continues without a reply", async () => {
    for (const [failure, isLong] of [
      [hopeless(), false],
      [lost(), true],
    ] as const) {
      world = new ScriptedLock();
      startMs = world.runtime.monotonicMs();
      world.answers.leave = () => Promise.reject(failure);
      expect(await leaveFor(claim(HOUR_MS), true)).toBe(false);
      await world.runtime.advance(2 * HOUR_MS);
      const last = world.timesOf("leave", startMs).at(-1) ?? 0;
      expect(last).toBeGreaterThanOrEqual(isLong ? HOUR_MS : 60_000);
      expect(last).toBeLessThan(isLong ? HOUR_MS + 20_000 : 80_000);
      expect(world.session.clientInbox.size).toBe(0);
    }
  });

  test("does not resend its only request after a reconnect", async () => {
    const answer = new Answer<void>();
    world.answers.leave = () => answer.promise;
    const leaving = watch(leaveFor(claim(30_000), false));
    await settle();
    world.store.reconnect("commands");
    await settle();
    expect(world.sentOf("leave")).toHaveLength(1);
    answer.resolve();
    await settle();
    expect(leaving.value).toBe(true);
    expect(world.session.clientInbox.size).toBe(0);
  });

  test("does not restart after close when an earlier request fails", async () => {
    const earlier = new Answer<void>();
    let calls = 0;
    world.answers.leave = async () => {
      calls += 1;
      if (calls === 1) await earlier.promise;
    };
    const leaving = watch(leaveFor(claim(30_000), true));
    await settle();
    await world.session.close();
    expect(world.sentOf("leave")).toHaveLength(2);
    earlier.reject(lost());
    await settle();
    expect(leaving.value).toBe(false);
    expect(world.runtime.running()).toBe(0);
    await world.runtime.advance(60_000);
    expect(world.sentOf("leave")).toHaveLength(2);
  });

  test("that gets replies makes its last attempt exactly when the lease ends", async () => {
    // The pauses grow: 50, 100 and 200 ms.
    await leaveFor(claim(350), true);
    await world.runtime.advance(10_000);
    expect(world.timesOf("leave", startMs)).toEqual([0, 50, 150, 350]);
  });

  test("without a reply continues for a minute even for a short lease", async () => {
    world.answers.leave = () => Promise.reject(lost());
    await leaveFor(claim(350), true);
    await world.runtime.advance(300_000);
    const times = world.timesOf("leave", startMs);
    expect(times.slice(0, 5)).toEqual([0, 50, 150, 350, 750]);
    // Pauses are at most 10 s.
    expect(times.at(-1)).toBeGreaterThanOrEqual(60_000);
    expect(times.at(-1)).toBeLessThan(70_000);
  });

  test("is triggered by a grant of a claim that no caller waits for", async () => {
    world.answers.acquire = async () => ({ outcome: "waiting", restMs: 30_000, nowUs: NOW_US });
    const acquiring = watch(world.lock.acquire({ waitMs: 500 }));
    await world.runtime.advance(600);
    expect(acquiring.state).toBe("rejected");
    expect(world.sentOf("leave")).toHaveLength(1);
    world.store.push(`+${world.lastNumber} 9 ${NOW_US}`);
    await settle();
    expect(world.sentOf("leave")).toHaveLength(2);
  });
});

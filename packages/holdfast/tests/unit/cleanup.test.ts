/** Release, cleanup and close on a manual clock. No timer may remain, and no retry may go on forever. */
import { beforeEach, describe, expect, test } from "vitest";
import { adopt } from "../../src/core/acquire.js";
import { ClosedError, LeaseLostError, StoreError } from "../../src/core/errors.js";
import type { ExportedLease } from "../../src/core/lease.js";
import { Lease } from "../../src/core/lease.js";
import type { AcquireReply } from "../../src/core/protocol.js";
import { settle } from "./manual-runtime.js";
import { Answer, lost, NOW_US, never, ScriptedLock, type Watched, watch } from "./scripted-lock.js";

let world: ScriptedLock;
let startMs: number;
beforeEach(() => {
  fresh();
});

function fresh(): void {
  world = new ScriptedLock();
  startMs = world.runtime.monotonicMs();
}

const TAKEN: AcquireReply = { outcome: "waiting", restMs: 30_000, nowUs: NOW_US };

describe("a release", () => {
  test("sends one request, however often it is called", async () => {
    const lease = await world.lock.acquire();
    expect(await Promise.all([lease.release(), lease.release()])).toEqual(["released", "released"]);
    expect(await lease.release()).toBe("released");
    expect(world.sentOf("release")).toHaveLength(1);
  });

  test("counts as released if the first reply is lost and the second says `not held`", async () => {
    for (const second of ["unclaimed", "claimed"] as const) {
      fresh();
      const lease = await world.lock.acquire();
      let first = true;
      world.answers.release = async () => {
        if (!first) return second;
        first = false;
        throw lost();
      };
      const releasing = lease.release();
      await world.runtime.advance(100);
      expect(await releasing).toBe("released");
    }
  });

  test("counts as released if the client may have sent the request twice", async () => {
    const lease = await world.lock.acquire();
    world.answers.release = async () => {
      world.store.reconnect("commands");
      return "claimed";
    };
    expect(await lease.release()).toBe("released");
  });

  test("reports the loss if the first reply says `not held`", async () => {
    const outcomes: unknown[] = [];
    for (const answer of ["unclaimed", "claimed", "forgotten"] as const) {
      fresh();
      world.answers.release = async () => answer;
      const lease = await world.lock.acquire();
      outcomes.push(await lease.release().catch((error: LeaseLostError) => error.reason));
    }
    expect(outcomes).toEqual(["expired-unclaimed", "server-lost", "server-lost"]);
  });

  test("of an expired lease checks its token, and a retry never turns it into a success", async () => {
    const lease = await world.lock.acquire({ renew: false });
    await world.runtime.advance(40_000);
    let first = true;
    world.answers.extend = async () => {
      if (!first) return "claimed";
      first = false;
      throw lost();
    };
    const releasing = watch(lease.release());
    await world.runtime.advance(1_000);
    expect(releasing.error).toMatchObject({ code: "ERR_LOCK_LEASE_LOST", reason: "expired" });
    expect(world.timesOf("release", startMs)).toEqual([]);
    expect(world.timesOf("leave", startMs).length).toBeGreaterThan(0);
  });

  test("of an expired lease succeeds if the server still holds the lock for its token", async () => {
    const lease = await world.lock.acquire({ renew: false });
    await world.runtime.advance(40_000);
    world.answers.extend = async () => "extended";
    expect(await lease.release()).toBe("released");
    expect(world.timesOf("leave", startMs).length).toBeGreaterThan(0);
  });

  test("without a reply rejects in bounded time and continues in the background until the lease is over", async () => {
    world.answers.release = () => never();
    world.answers.leave = () => Promise.reject(lost());
    const lease = await world.lock.acquire();
    const releasing = watch(lease.release());
    await world.runtime.advance(6_100);
    expect(releasing.error).toBeInstanceOf(StoreError);
    expect(world.runtime.running(true)).toBe(0);
    await world.runtime.advance(120_000);
    const leaves = world.timesOf("leave", startMs);
    expect(leaves.at(-1)).toBeGreaterThanOrEqual(30_000);
    expect(leaves.length).toBeLessThan(20);
    expect(world.runtime.running()).toBe(0);
  });

  test("that fails immediately is retried with pauses", async () => {
    world.answers.release = () => Promise.reject(lost(false));
    const lease = await world.lock.acquire();
    const releasing = watch(lease.release());
    await world.runtime.advance(10_000);
    expect(releasing.state).toBe("rejected");
    expect(world.sentOf("release").length).toBeLessThan(90);
  });

  test("that fails permanently is tried once", async () => {
    const failure = new StoreError("scripted", { mayHaveRun: false, transient: false, cause: "NOPERM" });
    world.answers.release = () => Promise.reject(failure);
    const lease = await world.lock.acquire();
    await expect(lease.release()).rejects.toBe(failure);
    expect(world.sentOf("release")).toHaveLength(1);
  });

  test("of an extended lease is retried until the longer lease is over", async () => {
    const lease = await world.lock.acquire();
    await lease.extend(600_000);
    world.answers.release = () => Promise.reject(lost());
    world.answers.leave = () => Promise.reject(lost());
    void lease.release().catch(() => {});
    await world.runtime.advance(500_000);
    expect(world.timesOf("leave", startMs).at(-1)).toBeGreaterThan(480_000);
    await world.runtime.advance(200_000);
    expect(world.runtime.running()).toBe(0);
  });
});

describe("a cleanup", () => {
  /** Aborts an acquire whose first request never got a reply. */
  async function uncertain(leaseMs: number): Promise<Watched<unknown>> {
    world.answers.acquire = () => never();
    const controller = new AbortController();
    const acquiring = watch(world.lock.acquire({ leaseMs, waitMs: Infinity, signal: controller.signal }));
    await settle();
    controller.abort("enough");
    await settle();
    return acquiring;
  }

  test("is one request when no other request is in flight", async () => {
    world.answers.acquire = async () => TAKEN;
    const acquiring = watch(world.lock.acquire({ waitMs: 1_000 }));
    await world.runtime.advance(1_000);
    expect(acquiring.state).toBe("rejected");
    await world.runtime.advance(120_000);
    expect(world.sentOf("leave")).toHaveLength(1);
    expect(world.runtime.running()).toBe(0);
  });

  test("is repeated at growing intervals until a lease that may still be granted would be over", async () => {
    await uncertain(30_000);
    await world.runtime.advance(300_000);
    const leaves = world.timesOf("leave", startMs);
    expect(leaves.slice(0, 5)).toEqual([0, 50, 150, 350, 750]);
    expect(leaves.at(-1)).toBeGreaterThanOrEqual(30_000);
    expect(leaves.length).toBeLessThan(15);
    expect(world.runtime.running()).toBe(0);
  });

  test("of a lease of one year stops soon after the server has replied", async () => {
    await uncertain(31_536_000_000);
    await world.runtime.advance(300_000);
    expect(world.sentOf("leave").length).toBeLessThan(20);
    expect(world.runtime.running()).toBe(0);
  });

  test("never keeps the process alive", async () => {
    await uncertain(30_000);
    for (let second = 0; second < 40; second += 1) {
      expect(world.runtime.running(true)).toBe(0);
      await world.runtime.advance(1_000);
    }
  });

  test("gives a late grant back immediately", async () => {
    await uncertain(30_000);
    await world.runtime.advance(1_000);
    const before = world.sentOf("leave").length;
    world.store.push(`+${world.lastNumber} 9 ${NOW_US}`);
    await settle();
    expect(world.sentOf("leave")).toHaveLength(before + 1);
  });

  test("is retried immediately when the connection is back", async () => {
    world.answers.leave = () => Promise.reject(lost());
    await uncertain(30_000);
    await world.runtime.advance(20_000);
    const before = world.sentOf("leave").length;
    world.store.reconnect("commands");
    await settle();
    expect(world.sentOf("leave")).toHaveLength(before + 1);
  });
});

describe("close", () => {
  /** What may be in progress when a Holdfast is closed. Each returns the call that must reject. */
  const STATES: Record<string, () => Promise<Watched<unknown>> | Watched<unknown>> = {
    "the first request is in flight": () => {
      world.answers.acquire = () => never();
      return watch(world.lock.acquire());
    },
    "a waiter is in the queue": async () => {
      world.answers.acquire = async () => TAKEN;
      const waiting = watch(world.lock.acquire());
      await world.runtime.advance(100);
      return waiting;
    },
    "a waiter pauses after a failure": async () => {
      world.answers.acquire = () => Promise.reject(lost());
      const waiting = watch(world.lock.acquire());
      await settle();
      return waiting;
    },
    "a subscription is in progress": async () => {
      world.store.subscribe = () => never();
      world.answers.acquire = async () => ({ ...TAKEN, outcome: "refused" });
      const waiting = watch(world.lock.acquire());
      await settle();
      return waiting;
    },
    "an adoption is in progress": async () => {
      const answer = new Answer<"adopted">();
      world.answers.adopt = () => answer.promise;
      const exported: ExportedLease = {
        version: 1,
        kind: "mutex",
        name: "scripted",
        owner: "other/1/30000/1",
        token: 5,
        leaseMs: 30_000,
        renew: true,
      };
      const adopting = watch(adopt(world.session, world.protocol, exported, (hold) => new Lease(hold)));
      await settle();
      setImmediate(() => answer.resolve("adopted"));
      return adopting;
    },
  };

  test.each(Object.keys(STATES))("rejects the call with ClosedError and leaves no timer when %s", async (state) => {
    const waiting = await STATES[state]?.();
    const closing = watch(world.session.close());
    await world.runtime.advance(5_000);
    expect(closing.state).toBe("fulfilled");
    expect(waiting?.error).toBeInstanceOf(ClosedError);
    await world.runtime.advance(120_000);
    expect(world.runtime.running()).toBe(0);
    expect(world.store.wasClosed).toBe(true);
  });

  test("notifies the holder first, then releases the lock", async () => {
    const order: string[] = [];
    world.answers.leave = async () => void order.push("leave");
    const lease = await world.lock.acquire();
    lease.signal.addEventListener("abort", () => order.push("abort"));
    await world.session.close();
    expect(order).toEqual(["abort", "leave"]);
    expect(lease.signal.reason).toMatchObject({ reason: "closed" });
    expect(await lease.release()).toBe("released");
    expect(world.sentOf("release")).toEqual([]);
    expect(world.runtime.running()).toBe(0);
  });

  test("ends in bounded time if the server does not reply, and then nothing runs", async () => {
    await world.lock.acquire();
    world.answers.acquire = () => never();
    void world.lock.acquire().catch(() => {});
    world.answers.leave = () => never();
    const closing = watch(world.session.close());
    await world.runtime.advance(10_000);
    expect(closing.state).toBe("fulfilled");
    const sent = world.sent.length;
    await world.runtime.advance(120_000);
    expect(world.sent).toHaveLength(sent);
    expect(world.runtime.running()).toBe(0);
  });

  test("during an unanswered release lets the cleanup run no longer than the lease", async () => {
    const lease = await world.lock.acquire();
    world.answers.release = () => never();
    world.answers.leave = () => Promise.reject(lost());
    const releasing = watch(lease.release());
    await settle();
    const closing = watch(world.session.close());
    await world.runtime.advance(10_000);
    expect(closing.state).toBe("fulfilled");
    expect(releasing.state).toBe("rejected");
    expect(world.runtime.running(true)).toBe(0);
    await world.runtime.advance(60_000);
    expect(world.runtime.running()).toBe(0);
    expect(world.sentOf("leave").length).toBeLessThan(20);
  });

  test("during an extension rejects the extension because the lease is over", async () => {
    const answer = new Answer<"extended">();
    world.answers.extend = () => answer.promise;
    const lease = await world.lock.acquire();
    const extending = watch(lease.extend(60_000));
    await settle();
    const closing = watch(world.session.close());
    await settle();
    answer.resolve("extended");
    await settle();
    expect(closing.state).toBe("fulfilled");
    expect(extending.error).toMatchObject({ code: "ERR_LOCK_LEASE_LOST", reason: "closed" });
    expect(world.runtime.running()).toBe(0);
  });

  test("ends a cleanup in progress", async () => {
    world.answers.acquire = () => Promise.reject(lost());
    world.answers.leave = () => Promise.reject(lost());
    const trying = watch(world.lock.tryAcquire());
    await settle();
    expect(trying.state).toBe("rejected");
    await world.session.close();
    await world.runtime.advance(120_000);
    expect(world.runtime.running()).toBe(0);
  });

  test("refuses later calls, and a second close waits for the first", async () => {
    await world.lock.acquire();
    const leaving = new Answer<void>();
    world.answers.leave = () => leaving.promise;
    const first = watch(world.session.close());
    const second = watch(world.session.close());
    await settle();
    await expect(world.lock.acquire()).rejects.toThrow(ClosedError);
    await expect(world.lock.tryAcquire()).rejects.toThrow(ClosedError);
    expect([first.state, second.state]).toEqual(["pending", "pending"]);
    leaving.resolve();
    await settle();
    expect([first.state, second.state]).toEqual(["fulfilled", "fulfilled"]);
  });
});

describe("an exported lease", () => {
  test("ends locally, is no longer renewed and keeps the length it was extended to", async () => {
    const lease = await world.lock.acquire({ maxHoldMs: 100_000 });
    await lease.extend(60_000);
    await world.runtime.advance(1_000);
    const exported = lease.export();
    expect(exported).toMatchObject({ token: 7, leaseMs: 60_000, renew: true, maxHoldMs: 99_000 });
    expect(lease.validForMs()).toBe(0);
    expect(() => lease.export()).toThrow(LeaseLostError);
    await world.runtime.advance(200_000);
    expect(world.sentOf("release")).toEqual([]);
    expect(world.sentOf("extend")).toHaveLength(1);
    expect(world.runtime.running()).toBe(0);
  });
});

test("nothing remains of thousands of acquires", async () => {
  for (let i = 0; i < 2_000; i += 1) await (await world.lock.acquire()).release();
  expect(world.session.clientInbox.size).toBe(0);
  // One timer refreshes the client's record, the other checks for leases until it finds none.
  expect(world.runtime.running()).toBe(2);
  await world.runtime.advance(40_000);
  expect(world.runtime.running()).toBe(0);
});

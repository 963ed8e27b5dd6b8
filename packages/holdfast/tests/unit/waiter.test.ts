/** One claim from its first request to its grant, on a manual clock. */
import { beforeEach, describe, expect, test } from "vitest";
import { waitForGrant } from "../../src/core/acquire.js";
import { AcquireTimeoutError, StoreError } from "../../src/core/errors.js";
import { DEFAULTS } from "../../src/core/options.js";
import type { AcquireReply } from "../../src/core/protocol.js";
import { settle } from "./manual-runtime.js";
import { Answer, lost, NOBODY, NOW_US, never, ScriptedLock, ScriptedStore, watch } from "./scripted-lock.js";

let world: ScriptedLock;
let startMs: number;
beforeEach(() => {
  world = new ScriptedLock();
  startMs = world.runtime.monotonicMs();
});

/** A "you wait" reply that the server sends right now. */
function waiting(restMs: number, outcome: "waiting" | "refused" = "waiting"): AcquireReply {
  return { outcome, restMs, nowUs: NOW_US + Math.round((world.runtime.monotonicMs() - startMs) * 1_000) };
}

/** The server's clock, `ms` after the start. */
function usAfter(ms: number): number {
  return NOW_US + ms * 1_000;
}

/** A server whose lock is held: it queues every claim that asks for it. */
function taken(restMs = 30_000): void {
  world.answers.acquire = async ({ enqueue }) => waiting(restMs, enqueue ? "waiting" : "refused");
}

test("a grant that cannot become a lease is released, and acquire rejects with the cause", async () => {
  for (const isPushed of [false, true]) {
    world = new ScriptedLock();
    if (isPushed) taken();
    const thrown = new Error("no room");
    const options = { ...DEFAULTS, waitMs: Infinity, signal: undefined, amount: 1 };
    const waiting = watch(
      waitForGrant(world.session, world.protocol, options, () => {
        throw thrown;
      }),
    );
    await world.runtime.advance(10);
    if (isPushed) world.store.push(`+${world.lastNumber} 7 ${usAfter(5)}`);
    await world.runtime.advance(0);
    expect(waiting).toMatchObject({ state: "rejected", error: thrown });
    expect(world.sentOf("leave")).toHaveLength(1);
    expect(world.runtime.running(true)).toBe(0);
  }
});

describe("a waiter in the queue", () => {
  test("queues as soon as its inbox is open, and then re-checks every 3 s", async () => {
    taken();
    const acquiring = watch(world.lock.acquire({ waitMs: Infinity }));
    await world.runtime.advance(8_000);
    expect(world.sentOf("acquire").map(({ enqueue }) => enqueue)).toEqual([false, true, true, true]);
    expect(world.timesOf("acquire", startMs)).toEqual([0, 0, 3_010, 6_020]);
    expect(world.sent.every(({ verb }) => verb === "acquire")).toBe(true);
    expect(acquiring.state).toBe("pending");
    expect(world.runtime.running(true)).toBe(1);
  });

  test("re-checks just after the current lease ends", async () => {
    taken(700);
    void world.lock.acquire({ waitMs: Infinity });
    await world.runtime.advance(800);
    expect(world.timesOf("acquire", startMs)).toEqual([0, 0, 715]);
  });

  test("re-checks every 3 s if the current lease has no end", async () => {
    taken(-1);
    void world.lock.acquire({ waitMs: Infinity });
    await world.runtime.advance(6_000);
    expect(world.timesOf("acquire", startMs)).toEqual([0, 0, 3_010]);
  });

  test("takes a grant message without another request", async () => {
    taken();
    const acquiring = world.lock.acquire();
    await world.runtime.advance(3_000);
    const sent = world.sent.length;
    world.store.push(`+${world.lastNumber} 99 ${usAfter(3_000)}`);
    const lease = await acquiring;
    expect(lease.token).toBe(99);
    expect(world.sent).toHaveLength(sent);
    // Dated by the server's clock, minus the drift allowance for the 3 s since the last reply.
    expect(lease.validForMs()).toBeCloseTo(29_698 - 30, 6);
    await lease.release();
  });

  test("takes a grant found by a re-check", async () => {
    taken();
    const acquiring = world.lock.acquire();
    await world.runtime.advance(3_000);
    world.answers.acquire = async () => ({ outcome: "granted", token: 8 });
    await world.runtime.advance(3_000);
    expect((await acquiring).token).toBe(8);
  });

  test("re-checks immediately after a reconnect", async () => {
    taken();
    void world.lock.acquire({ waitMs: Infinity });
    await world.runtime.advance(1_000);
    world.store.reconnect("inbox");
    await world.runtime.advance(0);
    expect(world.timesOf("acquire", startMs)).toEqual([0, 0, 1_000]);
  });

  test("has one re-check in flight, however often the inbox reconnects", async () => {
    taken();
    void world.lock.acquire({ waitMs: Infinity });
    await world.runtime.advance(1_000);
    const answer = new Answer<AcquireReply>();
    world.answers.acquire = () => answer.promise;
    const before = world.sent.length;
    for (let i = 0; i < 5; i += 1) world.store.reconnect("inbox");
    await world.runtime.advance(100);
    expect(world.sent).toHaveLength(before + 1);
    taken();
    answer.resolve(waiting(30_000));
    await world.runtime.advance(100);
    expect(world.sent).toHaveLength(before + 2);
  });

  test("with waitMs Infinity never times out", async () => {
    taken();
    const acquiring = watch(world.lock.acquire({ waitMs: Infinity }));
    await world.runtime.advance(600_000);
    expect(acquiring.state).toBe("pending");
    expect(world.sentOf("acquire").length).toBeLessThan(205);
  });
});

describe("a grant message", () => {
  test("before the reply to the queueing request is a grant", async () => {
    taken();
    const answer = new Answer<AcquireReply>();
    world.answers.acquire = ({ enqueue }) => (enqueue ? answer.promise : Promise.resolve(waiting(10_000, "refused")));
    const acquiring = world.lock.acquire();
    await world.runtime.advance(50);
    world.store.push(`+${world.lastNumber} 99 ${usAfter(40)}`);
    const lease = await acquiring;
    expect(lease.token).toBe(99);
    answer.resolve(waiting(10_000));
    await world.runtime.advance(9_000);
    lease.assertHeld();
    expect(world.sentOf("leave")).toEqual([]);
  });

  test("before any reply is dated from the first request, the earliest possible time", async () => {
    const answer = new Answer<AcquireReply>();
    await world.session.clientInbox.open(1_000);
    world.answers.acquire = () => answer.promise;
    const acquiring = world.lock.acquire();
    await world.runtime.advance(1_500);
    world.store.push(`+${world.lastNumber} 99 ${usAfter(1_400)}`);
    expect((await acquiring).validForMs()).toBe(29_698 - 1_500);
  });

  test("older than the last `you wait` reply is not trusted, and the waiter re-checks", async () => {
    taken();
    const acquiring = watch(world.lock.acquire());
    await world.runtime.advance(4_000);
    const before = world.sent.length;
    world.store.push(`+${world.lastNumber} 99 ${usAfter(2_000)}`);
    await world.runtime.advance(0);
    expect(acquiring.state).toBe("pending");
    expect(world.sent).toHaveLength(before + 1);
  });

  test("that took a long time to arrive is re-checked, and the lease starts again if it is still held", async () => {
    taken();
    const acquiring = world.lock.acquire({ waitMs: Infinity, leaseMs: 4_000 });
    await world.runtime.advance(4_500);
    world.answers.acquire = async () => ({ outcome: "granted", token: 99 });
    world.store.push(`+${world.lastNumber} 99 ${usAfter(1_000)}`);
    const lease = await acquiring;
    expect(lease.validForMs()).toBe(4_000 * 0.99 - 2);
  });

  test("that cannot be dated because the first reply is missing is re-checked immediately", async () => {
    const lost = new Answer<AcquireReply>();
    await world.session.clientInbox.open(1_000);
    world.answers.acquire = () => lost.promise;
    const acquiring = world.lock.acquire({ waitMs: Infinity, leaseMs: 1_000 });
    await world.runtime.advance(900);
    const again = new Answer<AcquireReply>();
    world.answers.acquire = () => again.promise;
    for (let copy = 0; copy < 5; copy += 1) world.store.push(`+${world.lastNumber} 99 ${usAfter(890)}`);
    expect(world.sentOf("acquire")).toHaveLength(2);
    again.resolve({ outcome: "granted", token: 99 });
    const lease = await acquiring;
    expect([lease.token, lease.validForMs()]).toEqual([99, 1_000 * 0.99 - 2]);
    // The first request may still run after the release, so a leave undoes it.
    await lease.release();
    await world.runtime.advance(100);
    expect(world.sentOf("leave").length).toBeGreaterThan(0);
  });

  test("received twice creates one lease", async () => {
    taken();
    const acquiring = world.lock.acquire();
    await world.runtime.advance(1_000);
    const message = `+${world.lastNumber} 99 ${usAfter(1_000)}`;
    world.store.push(message);
    world.store.push(message);
    const lease = await acquiring;
    world.store.push(message);
    await world.runtime.advance(1_000);
    lease.assertHeld();
    expect(world.sentOf("leave")).toEqual([]);
  });

  test("for an unknown claim is ignored", async () => {
    const lease = await world.lock.acquire();
    world.store.push(`+4711 99 ${usAfter(0)}`);
    await world.runtime.advance(0);
    expect(world.sent).toHaveLength(1);
    lease.assertHeld();
  });
});

describe("a wait", () => {
  test("ends after exactly waitMs, leaves the queue and reports the holder", async () => {
    taken();
    world.answers.inspect = async () => ({
      ...NOBODY,
      holders: [{ owner: "other-client/3/30000/1/report", token: NOW_US, leaseLeftMs: 12_000 }],
      ahead: 2,
    });
    const acquiring = watch(world.lock.acquire({ waitMs: 2_500 }));
    await world.runtime.advance(2_499);
    expect(acquiring.state).toBe("pending");
    await world.runtime.advance(1);
    const error = acquiring.error as AcquireTimeoutError;
    expect(error).toBeInstanceOf(AcquireTimeoutError);
    expect(error.holder).toMatchObject({ label: "report", token: NOW_US });
    expect(error.waitersAhead).toBe(2);
    expect(world.sent.slice(-2).map(({ verb }) => verb)).toEqual(["inspect", "leave"]);
    expect(world.runtime.running(true)).toBe(0);
  });

  test("lasts its full length even if the holder's leases are shorter", async () => {
    taken(200);
    const acquiring = watch(world.lock.acquire({ waitMs: 3_600_000 }));
    await world.runtime.advance(3_599_999);
    expect(acquiring.state).toBe("pending");
    await world.runtime.advance(1);
    expect(acquiring.state).toBe("rejected");
  });

  test("of 0 ms sends one request, does not queue and reports the holder", async () => {
    taken();
    const acquiring = watch(world.lock.acquire({ waitMs: 0 }));
    await world.runtime.advance(0);
    expect(acquiring.error).toBeInstanceOf(AcquireTimeoutError);
    expect(world.sent.map(({ verb, enqueue }) => [verb, enqueue])).toEqual([
      ["acquire", false],
      ["inspect", undefined],
    ]);
  });

  test("is not part of tryAcquire, which returns null after one round trip", async () => {
    taken();
    const acquiring = watch(world.lock.tryAcquire());
    await world.runtime.advance(0);
    expect(acquiring).toEqual({ state: "fulfilled", value: null });
    expect(world.sent.map(({ verb, enqueue }) => [verb, enqueue])).toEqual([["acquire", false]]);
    expect(world.runtime.running(true)).toBe(0);
  });

  test("ends immediately with the signal's reason at any stage", async () => {
    const reason = { why: "gone" };
    const places: Record<string, () => void> = {
      "the first answer": () => {
        world.answers.acquire = () => never();
      },
      "the subscription": () => {
        taken();
        world.store.subscribe = () => never();
      },
      "the answer that queues it": () => {
        world.answers.acquire = ({ enqueue }) => (enqueue ? never() : Promise.resolve(waiting(9_000, "refused")));
      },
      "its turn": () => taken(),
      "the next try after a failure": () => {
        world.answers.acquire = () => Promise.reject(lost());
      },
      "the next poll": () => {
        world.store.subscribe = ScriptedStore.unsupported;
        taken();
      },
    };
    for (const [place, arrange] of Object.entries(places)) {
      world = new ScriptedLock();
      startMs = world.runtime.monotonicMs();
      arrange();
      const controller = new AbortController();
      const acquiring = watch(world.lock.acquire({ waitMs: Infinity, signal: controller.signal }));
      await world.runtime.advance(1);
      expect(acquiring.state, place).toBe("pending");
      controller.abort(reason);
      await settle();
      expect(acquiring.error, place).toBe(reason);
      expect(world.runtime.running(true), place).toBe(0);
      const mayStand = place !== "the subscription" && place !== "the next poll";
      expect(world.sentOf("leave").length > 0, place).toBe(mayStand);
      await world.runtime.advance(200_000);
      expect(world.runtime.running(), place).toBe(0);
    }
  });

  test("that is aborted while its grant is in transit gives the grant back", async () => {
    taken();
    const controller = new AbortController();
    const acquiring = watch(world.lock.acquire({ signal: controller.signal }));
    await world.runtime.advance(1_000);
    world.answers.leave = () => never();
    controller.abort("no more");
    world.store.push(`+${world.lastNumber} 99 ${usAfter(1_000)}`);
    await settle();
    expect(acquiring.error).toBe("no more");
    expect(world.sentOf("leave")).toHaveLength(2);
  });

  test("leaves no listener on the signal, however it ends", async () => {
    let listeners = 0;
    const { signal } = new AbortController();
    const add = signal.addEventListener.bind(signal);
    const remove = signal.removeEventListener.bind(signal);
    signal.addEventListener = (...args: Parameters<typeof add>) => {
      listeners += 1;
      add(...args);
    };
    signal.removeEventListener = (...args: Parameters<typeof remove>) => {
      listeners -= 1;
      remove(...args);
    };
    await (await world.lock.acquire({ signal })).release();
    taken();
    const late = watch(world.lock.acquire({ signal, waitMs: 100 }));
    await world.runtime.advance(200);
    expect(late.state).toBe("rejected");
    world.answers.acquire = () =>
      Promise.reject(new StoreError("x", { mayHaveRun: false, transient: false, cause: 1 }));
    await expect(world.lock.acquire({ signal })).rejects.toThrow(StoreError);
    expect(listeners).toBe(0);
  });
});

describe("a lost reply", () => {
  test("to the first request leads to a retry by the same owner", async () => {
    let first = true;
    world.answers.acquire = async () => {
      if (!first) return { outcome: "granted", token: 7 };
      first = false;
      throw lost();
    };
    const acquiring = world.lock.acquire();
    await world.runtime.advance(100);
    const lease = await acquiring;
    const owners = world.sentOf("acquire").map(({ claim }) => claim?.owner);
    expect(new Set(owners)).toEqual(new Set([lease.owner]));
    expect(owners).toHaveLength(2);
    expect(world.sentOf("leave")).toEqual([]);
  });

  test("that arrives after the lease it granted is over creates no lease", async () => {
    const answers = [new Answer<AcquireReply>(), new Answer<AcquireReply>()];
    world.answers.acquire = () => (answers.shift() as Answer<AcquireReply>).promise;
    const [slow, quick] = [...answers] as [Answer<AcquireReply>, Answer<AcquireReply>];
    const acquiring = watch(world.lock.acquire({ leaseMs: 500 }));
    await world.runtime.advance(600);
    slow.resolve({ outcome: "granted", token: 7 });
    await world.runtime.advance(100);
    expect(acquiring.state).toBe("pending");
    quick.resolve({ outcome: "granted", token: 7 });
    await world.runtime.advance(0);
    expect(acquiring.state).toBe("fulfilled");
    expect(acquiring.value?.validForMs()).toBeGreaterThan(300);
  });

  test("to tryAcquire makes it reject, and the possible grant is released repeatedly until its lease would be over", async () => {
    world.answers.acquire = () => never();
    const trying = watch(world.lock.tryAcquire({ leaseMs: 3_000 }));
    await world.runtime.advance(2_000);
    expect(trying.error).toBeInstanceOf(StoreError);
    await world.runtime.advance(30_000);
    const leaves = world.timesOf("leave", startMs);
    expect(leaves[0]).toBe(2_000);
    expect(leaves.at(-1)).toBeGreaterThanOrEqual(5_000);
    expect(leaves.length).toBeLessThan(12);
    expect(world.runtime.running()).toBe(0);
  });

  test("at the deadline makes acquire reject with the failure, not with a timeout", async () => {
    taken();
    const acquiring = watch(world.lock.acquire({ waitMs: 6_000 }));
    await world.runtime.advance(1_000);
    world.answers.acquire = () => Promise.reject(lost());
    world.answers.leave = () => Promise.reject(lost());
    await world.runtime.advance(6_000);
    expect(acquiring.error).toBeInstanceOf(StoreError);
    expect(acquiring.error).toMatchObject({ mayHaveRun: true });
  });

  test("to the cleanup alone makes acquire reject with the failure", async () => {
    taken();
    world.answers.leave = () => Promise.reject(lost());
    const acquiring = watch(world.lock.acquire({ waitMs: 1_000 }));
    await world.runtime.advance(1_000);
    expect(acquiring.error).toBeInstanceOf(StoreError);
    expect(String(acquiring.error)).toContain("1000 ms");
  });

  test("to the inspect request only removes the holder from the error", async () => {
    taken();
    world.answers.inspect = () => never();
    const acquiring = watch(world.lock.acquire({ waitMs: 1_000 }));
    await world.runtime.advance(3_100);
    expect(acquiring.error).toBeInstanceOf(AcquireTimeoutError);
    expect((acquiring.error as AcquireTimeoutError).holder).toBeUndefined();
  });
});

describe("a store that fails immediately", () => {
  test("is retried with pauses until a whole lease has passed", async () => {
    world.answers.acquire = () => Promise.reject(lost(false));
    const acquiring = watch(world.lock.acquire({ waitMs: Infinity }));
    await world.runtime.advance(29_000);
    expect(acquiring.state).toBe("pending");
    expect(world.sentOf("acquire").length).toBeLessThan(100);
    await world.runtime.advance(2_000);
    expect(acquiring.error).toBeInstanceOf(StoreError);
    expect(world.sentOf("leave")).toEqual([]);
    expect(world.runtime.running(true)).toBe(0);
  });

  test("with a permanent error ends the wait at the first reply", async () => {
    const failure = new StoreError("scripted", { mayHaveRun: false, transient: false, cause: "NOPERM" });
    world.answers.acquire = () => Promise.reject(failure);
    await expect(world.lock.acquire({ waitMs: Infinity })).rejects.toBe(failure);
    expect(world.sent).toHaveLength(1);
  });

  test("with a non-StoreError ends the wait with that value, even undefined", async () => {
    for (const thrown of [undefined, null, "text", 7, new Error("not mine")]) {
      world.answers.acquire = () => Promise.reject(thrown);
      const acquiring = watch(world.lock.acquire());
      await world.runtime.advance(0);
      expect(acquiring.state).toBe("rejected");
      expect(acquiring.error).toBe(thrown);
    }
  });
});

describe("a client without an inbox", () => {
  test("never queues, and polls after random pauses of 10 to 500 ms", async () => {
    world.store.subscribe = ScriptedStore.unsupported;
    let seed = 0;
    world.runtime.random = () => {
      seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648;
      return seed / 2_147_483_648;
    };
    taken();
    void world.lock.acquire({ waitMs: Infinity });
    await world.runtime.advance(120_000);
    expect(world.sentOf("acquire").every(({ enqueue }) => enqueue === false)).toBe(true);
    const times = world.timesOf("acquire", startMs);
    const pauses = times.slice(1).map((time, i) => time - (times[i] as number));
    // At most the first refusal and the failed subscription cause a request without a pause.
    expect(pauses.filter((pause) => pause < 10)).toEqual([]);
    expect(Math.max(...pauses)).toBeLessThanOrEqual(500);
    expect(new Set(pauses.slice(10)).size).toBeGreaterThan(50);
    expect(world.store.subscriptions).toBe(1);
  });

  test("whose first subscription fails polls until one succeeds, then queues", async () => {
    world.store.subscribe = () => Promise.reject(lost());
    taken();
    void world.lock.acquire({ waitMs: Infinity });
    await world.runtime.advance(2_000);
    expect(world.sentOf("acquire").every(({ enqueue }) => enqueue === false)).toBe(true);
    world.store.subscribe = () => Promise.resolve();
    await world.runtime.advance(600);
    const queued = world.sentOf("acquire").findIndex(({ enqueue }) => enqueue === true);
    expect(queued).toBeGreaterThan(0);
    const before = world.sent.length;
    await world.runtime.advance(4_900);
    expect(world.sent.length - before).toBeLessThanOrEqual(1);
  });

  test("whose subscription hangs polls occasionally and keeps the process alive", async () => {
    world.store.subscribe = () => never();
    taken();
    void world.lock.acquire({ waitMs: Infinity });
    await world.runtime.advance(20_000);
    expect(world.timesOf("acquire", startMs).length).toBeLessThanOrEqual(11);
    expect(world.timesOf("acquire", startMs).length).toBeGreaterThan(5);
    expect(world.runtime.running(true)).toBe(1);
  });
});

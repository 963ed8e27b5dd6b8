/** How a hold ends if its holder does not end it, and how it reacts to change hints. On a manual clock. */
import { beforeEach, describe, expect, test } from "vitest";
import { ClosedError, type LeaseLostError, UnsupportedError } from "../../src/core/errors.js";
import type { Hold } from "../../src/core/hold.js";
import { Lease } from "../../src/core/lease.js";
import { settle } from "./manual-runtime.js";
import { Answer, lost, NOW_US, ScriptedLock, watch } from "./scripted-lock.js";

let world: ScriptedLock;
beforeEach(() => {
  world = new ScriptedLock();
});

/** The hold of a mutex lease, which other kinds of locks build on. */
const holdOf = (lease: Lease): Hold => Lease.holdingOf(lease) as Hold;

const reasonOf = (lease: Lease): unknown => (lease.signal.reason as LeaseLostError | undefined)?.reason;

describe("a force-release", () => {
  test("gives author and reason to the holder, and to every listener once, even a late one", async () => {
    const lease = await world.lock.acquire();
    const told: unknown[][] = [];
    const listen = (who: string): void => holdOf(lease).onLost((...facts) => void told.push([who, ...facts]));
    listen("first");
    listen("second");
    world.store.push(`-${world.lastNumber} ops%20team/a%20restart`);
    world.store.push(`-${world.lastNumber} somebody/else`);
    const forced = { by: "ops team", reason: "a restart" };
    listen("late");
    expect(told).toEqual(["first", "second", "late"].map((who) => [who, "force-released", forced]));
    expect(() => lease.assertHeld()).toThrow(expect.objectContaining({ reason: "force-released", forced }));
  });
});

describe("a change hint", () => {
  test("triggers an immediate renewal that discovers a loss", async () => {
    const lease = await world.lock.acquire();
    world.store.push(`~${world.lastNumber}`);
    await world.runtime.advance(1);
    expect([world.sentOf("extend").length, lease.signal.aborted]).toEqual([1, false]);
    world.answers.extend = async () => "claimed";
    world.store.push(`~${world.lastNumber}`);
    await world.runtime.advance(1);
    expect(reasonOf(lease)).toBe("server-lost");
  });

  test("sends nothing if the lease is not renewed", async () => {
    await world.lock.acquire({ renew: false });
    world.store.push(`~${world.lastNumber}`);
    await world.runtime.advance(100);
    expect(world.sentOf("extend")).toEqual([]);
  });

  test("is assumed when a cluster client has opened its inbox", async () => {
    world = new ScriptedLock({ isCluster: true });
    const connected = new Answer<void>();
    world.store.subscribe = () => connected.promise;
    await world.lock.acquire();
    await world.runtime.advance(100);
    expect(world.sentOf("extend")).toEqual([]);
    connected.resolve();
    await world.runtime.advance(1_001);
    expect(world.sentOf("extend")).toHaveLength(1);
  });
});

describe("a hold that a script ended", () => {
  test("sends nothing more and is not lost", async () => {
    const lease = await world.lock.acquire();
    const hold = holdOf(lease);
    const told: unknown[] = [];
    hold.onLost((reason) => told.push(reason));
    hold.end();
    expect([hold.validForMs(), world.session.held(), world.session.clientInbox.size]).toEqual([0, [], 0]);
    hold.end();
    world.store.push(`-${world.lastNumber}`);
    await world.runtime.advance(60_000);
    expect([told, world.sent.length, world.runtime.running()]).toEqual([[], 1, 0]);
  });

  test("is neither awaited nor released by close", async () => {
    const lease = await world.lock.acquire();
    const closing = watch(world.session.close(60_000));
    holdOf(lease).end();
    await settle();
    expect(closing.value).toEqual({ released: [], unsettled: [] });
  });

  test("undoes its own late requests, if there are any", async () => {
    holdOf(await world.lock.acquire()).undoLateRequests();
    expect(world.sentOf("leave")).toEqual([]);
    // The renewal has no reply, and its reclaim request may still run.
    Object.assign(world.protocol, { reclaim: () => Promise.reject(lost()) });
    world.answers.extend = async () => "forgotten";
    const hold = holdOf(await world.lock.acquire());
    await world.runtime.advance(10_000);
    hold.end();
    hold.undoLateRequests();
    await settle();
    expect(world.sentOf("leave")).toHaveLength(1);
  });
});

describe("a copy of a grant message", () => {
  const granted = async (): Promise<Lease> => {
    world.answers.acquire = async () => ({ outcome: "waiting", restMs: 30_000, nowUs: NOW_US });
    const acquiring = world.lock.acquire();
    await settle();
    world.store.push(`+${world.lastNumber} 9 ${NOW_US}`);
    return acquiring;
  };

  test("changes nothing during the hold", async () => {
    const lease = await granted();
    world.store.push(`+${world.lastNumber} 9 ${NOW_US}`);
    await settle();
    expect([lease.token, world.sentOf("leave").length]).toEqual([9, 0]);
    lease.assertHeld();
  });

  test("is ignored during and after the release, but a later grant is released", async () => {
    for (const end of [(lease: Lease) => void lease.release(), (lease: Lease) => holdOf(lease).end()]) {
      world = new ScriptedLock();
      end(await granted());
      await settle();
      world.store.push(`+${world.lastNumber} 9 ${NOW_US}`);
      await settle();
      expect(world.sentOf("leave")).toEqual([]);
      world.store.push(`+${world.lastNumber} 10 ${NOW_US}`);
      await settle();
      expect(world.sentOf("leave")).toHaveLength(1);
    }
  });
});

describe("a hold used by another kind of lock", () => {
  test("sends nothing and reports no loss while at rest, and can be extended", async () => {
    const lease = await world.lock.acquire();
    const hold = holdOf(lease);
    hold.rest();
    await world.runtime.advance(20_000);
    expect(world.sentOf("extend")).toEqual([]);
    expect(await hold.extend(30_000)).toBe("extended");
    await world.runtime.advance(29_697);
    expect(hold.validForMs()).toBe(1);
    await world.runtime.advance(60_000);
    expect([world.sentOf("extend").length, lease.signal.aborted]).toEqual([1, false]);
  });

  test("is released with the new token after a second grant", async () => {
    const released: number[] = [];
    world.protocol.release = async ({ token }) => {
      released.push(token);
      return "released";
    };
    const lease = await world.lock.acquire();
    holdOf(lease).regranted(12);
    expect(world.session.held()).toMatchObject([{ token: 12 }]);
    await lease.release();
    expect(released).toEqual([12]);
  });

  test.each([
    [false, 1, "held"],
    [true, 0, "server-lost"],
  ])("is reclaimed only if it cannot have changed (changed: %s, reclaimed %i times)", async (changes, count, end) => {
    let putBack = 0;
    const reclaim = async (): Promise<"reclaimed"> => {
      putBack += 1;
      return "reclaimed";
    };
    Object.assign(world.protocol, { reclaim });
    const lease = await world.lock.acquire();
    if (changes) holdOf(lease).changes();
    world.answers.extend = async () => "forgotten";
    await world.runtime.advance(10_000);
    expect([putBack, reasonOf(lease) ?? "held"]).toEqual([count, end]);
  });

  test("cannot be exported if its kind does not support that, and is still held", async () => {
    Object.assign(world.protocol, { exported: undefined });
    const lease = await world.lock.acquire();
    expect(() => lease.export()).toThrow(UnsupportedError);
    expect(() => lease.export()).toThrow("A lease of a mutex cannot be exported.");
    lease.assertHeld();
    await world.runtime.advance(10_000);
    expect(world.sentOf("extend")).toHaveLength(1);
  });
});

describe("closing the Holdfast", () => {
  test.each([
    [undefined, 30_000],
    [1_000, 30_000],
    [60_000, 60_000],
  ])("after an extension to %s ms sends a leave request with a lease of %i ms", async (extended, leaseMs) => {
    const lease = await world.lock.acquire();
    if (extended !== undefined) await lease.extend(extended);
    await world.session.close();
    const [left] = world.sentOf("leave");
    expect([left?.claim?.leaseMs, left?.claim?.owner]).toEqual([leaseMs, lease.owner]);
  });

  test("rejects callers that share a claim immediately instead of serving them in turn", async () => {
    world = new ScriptedLock({ takesTurns: true });
    world.answers.acquire = async () => ({ outcome: "granted", token: 1_000 });
    const calls = Array.from({ length: 3 }, () => watch(world.lock.acquire({ waitMs: Infinity })));
    await settle();
    expect(calls.filter(({ state }) => state === "fulfilled")).toHaveLength(1);
    const closing = watch(world.session.close(60_000));
    await settle();
    const rejected = calls.filter(({ error }) => error instanceof ClosedError);
    expect([rejected.length, closing.state]).toEqual([2, "pending"]);
    await calls.find(({ value }) => value !== undefined)?.value?.release();
    await settle();
    expect(closing.value?.released).toHaveLength(1);
    expect(world.sentOf("release")).toHaveLength(1);
  });
});

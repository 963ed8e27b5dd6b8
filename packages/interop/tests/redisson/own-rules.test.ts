/** Defects of Redisson that Holdfast avoids, invisibly to Java. The numbers are the rows of the wire reference. */

import { AcquireTimeoutError, type Lease, LeaseLostError, StoreError, UnsupportedError } from "holdfast";
import { expect, test, vi } from "vitest";
import { systemRuntime } from "../../../holdfast/src/core/runtime.js";
import { createHoldfastOn } from "../../../holdfast/src/holdfast.js";
import { storeFor } from "../../../holdfast/src/stores/detect.js";
import { withLeaseInTime } from "../../../holdfast/src/testing/delays.js";
import { redisson } from "../../src/redisson/index.js";
import { lockChannel } from "../../src/redisson/names.js";
import { once, type Service, useScene } from "./scene.js";
import type { Held } from "./side.js";

// Cases that run late on a busy machine are repeated with a longer lease.
vi.setConfig({ testTimeout: 90_000 });

const scene = useScene();
const LONG_MS = 60_000;
/** Shorter than the periodic re-check interval: a waiter served within it was woken by a message. */
const WOKEN_MS = 3_500;

const aborted = (signal: AbortSignal): Promise<unknown> =>
  vi.waitFor(() => {
    expect(signal.aborted).toBe(true);
    return signal.reason;
  }, 10_000);

test("1: the next renewal reports a lock that Java force-unlocked as lost, and does not re-create it", () =>
  withLeaseInTime(async (leaseMs) => {
    const [name, node, java] = [scene.name(), scene.node(), scene.java()];
    const lease = await node.locks.lock(name).acquire({ leaseMs });
    expect(await java.forceUnlock({ type: "lock", name })).toBe(true);
    expect(await aborted(lease.signal)).toBeInstanceOf(LeaseLostError);
    expect(await scene.redis.exists(name)).toBe(0);
  }));

test("1: a holder that cannot reach the server is notified before its key expires", () =>
  withLeaseInTime(async (leaseMs) => {
    const [name, node] = [scene.name(), scene.node()];
    const lease = await node.locks.lock(name).acquire({ leaseMs });
    node.client.disconnect();
    const [validMs, atMs] = [lease.validForMs(), performance.now()];
    const leftMs = await scene.redis.pttl(name);
    expect(leftMs + performance.now() - atMs).toBeGreaterThan(validMs);
    await aborted(lease.signal);
    expect(lease.validForMs()).toBe(0);
  }));

test("1: a lease counts from before its request was sent", async () => {
  const [name, node] = [scene.name(), scene.node()];
  node.before = () => new Promise((resolve) => setTimeout(resolve, 300));
  const lease = await node.locks.lock(name).acquire({ leaseMs: 5_000, renew: false });
  expect(lease.validForMs()).toBeLessThanOrEqual(4_700);
  expect(await scene.redis.pttl(name)).toBeGreaterThan(lease.validForMs());
});

const ENDS: readonly (readonly [string, (lease: Lease, node: Service) => Promise<unknown>])[] = [
  ["released", (lease) => lease.release()],
  [
    "released without a reply",
    (lease, node) => {
      node.loses = once("release");
      return lease.release();
    },
  ],
  ["force-released", (lease, node) => node.locks.lock(lease.name).forceRelease({ owner: lease.owner })],
  ["closed with its Holdfast", (_lease, node) => node.holdfast.close()],
];

test.each(ENDS)("2: a lease that was %s is never renewed again", (_, end) =>
  withLeaseInTime(async (leaseMs) => {
    const [name, node] = [scene.name(), scene.node()];
    const lease = await node.locks.lock(name).acquire({ leaseMs });
    await vi.waitFor(() => expect(node.sent).toContain("extend"), 10_000);
    await end(lease, node);
    if (!lease.signal.aborted && node.sent.at(-1) === "force-release") await aborted(lease.signal);
    // Re-create the hold. A leftover renewal would find it and keep it alive forever.
    await scene.redis.hset(name, lease.owner, 1);
    await scene.redis.pexpire(name, 2 * leaseMs);
    await vi.waitFor(async () => expect(await scene.redis.exists(name)).toBe(0), 10_000);
  }),
);

test("3: a failed renewal is retried immediately, not a period later", () =>
  withLeaseInTime(async (leaseMs) => {
    const [name, node] = [scene.name(), scene.node()];
    const lease = await node.locks.lock(name).acquire({ leaseMs });
    let failures = 0;
    node.loses = ({ name: script }) => script === "interop/redisson/extend" && failures++ < 2;
    await vi.waitFor(() => expect(node.sent.filter((sent) => sent === "extend").length).toBeGreaterThan(3), 10_000);
    expect(lease.signal.aborted).toBe(false);
    expect(await lease.release()).toBe("released");
  }, 1_500));

test.each([
  ["lock", "acquire"],
  ["fencedLock", "acquire"],
  ["spinLock", "acquire"],
  ["fairLock", "fair/acquire"],
] as const)("4: a %s whose first reply was lost is acquired once and counted once", async (kind, script) => {
  const [name, node] = [scene.name(), scene.node()];
  node.loses = once(script);
  const lease = await node.locks[kind](name).acquire();
  expect(await scene.redis.hgetall(name)).toEqual({ [lease.owner]: "1" });
  if (kind === "fencedLock") expect(await scene.redis.get(`redisson_lock_token:{${name}}`)).toBe("1");
  expect(await lease.release()).toBe("released");
  expect(await scene.redis.exists(name)).toBe(0);
});

test.each([
  ["read", "read-write/read-acquire"],
  ["write", "read-write/write-acquire"],
] as const)("4: a %s lock whose first reply was lost is acquired once and counted once", async (side, script) => {
  const [name, node] = [scene.name(), scene.node()];
  node.loses = once(script);
  const lease = await node.locks.readWriteLock(name)[side].acquire();
  expect(await scene.redis.hgetall(name)).toEqual({ mode: side, [lease.owner]: "1" });
  expect(await lease.release()).toBe("released");
  await vi.waitFor(async () => expect(await scene.redis.keys(`*${name}*`)).toEqual([]), 10_000);
});

test("4: a tryAcquire whose reply was lost leaves no orphan", async () => {
  const [name, node, java] = [scene.name(), scene.node(), scene.java()];
  for (const kind of ["lock", "fairLock"] as const) {
    node.loses = ({ name: script }) => /(^|\/)acquire$/.test(script);
    await expect(node.locks[kind](name).tryAcquire({ leaseMs: LONG_MS })).rejects.toMatchObject({ mayHaveRun: true });
    node.loses = () => false;
    await vi.waitFor(async () => expect(await scene.redis.exists(name)).toBe(0), 10_000);
  }
  expect(await (await java.acquire({ type: "lock", name }, { waitMs: 0 }))?.unlock()).toBe(true);
});

test("5: an extension never shortens a lease", async () => {
  const [name, node] = [scene.name(), scene.node({ renew: false, leaseMs: 30_000 })];
  const { readWriteLock, lock, fairLock } = node.locks;
  for (const make of [
    () => lock(name),
    () => fairLock(name),
    () => readWriteLock(name).read,
    () => readWriteLock(name).write,
  ]) {
    const lease = await make().acquire();
    await lease.extend(200);
    expect(await scene.redis.pttl(name)).toBeGreaterThan(25_000);
    await lease.extend(30_000);
    await lease.release();
  }
});

test("6: two holds of one object have separate leases", () =>
  withLeaseInTime(async (leaseMs) => {
    const [name, node] = [scene.name(), scene.node({ renew: false })];
    const { read } = node.locks.readWriteLock(name);
    const long = await read.acquire({ leaseMs: 30_000 });
    const short = await read.acquire({ leaseMs });
    expect(short.owner).not.toBe(long.owner);
    await aborted(short.signal);
    expect(long.validForMs()).toBeGreaterThan(15_000);
    const holds = [short, long].map(({ owner }) => `{${name}}:${owner}:rwlock_timeout:1`);
    await expect.poll(() => scene.redis.exists(holds[0] as string), { timeout: 10_000 }).toBe(0);
    expect(await scene.redis.exists(holds[1] as string)).toBe(1);
  }));

test("12: each holder gets its own token, a retry does not increment it, and the counter never expires", async () => {
  const [name, node, java] = [scene.name(), scene.node(), scene.java()];
  const tokens: number[] = [];
  const token = `redisson_lock_token:{${name}}`;
  for (let round = 0; round < 3; round += 1) {
    node.loses = once("acquire");
    const ours = await node.locks.fencedLock(name).acquire();
    tokens.push(ours.token);
    await scene.redis.del(name);
    const theirs = await java.acquire({ type: "fenced", name }, { waitMs: 0 });
    tokens.push(theirs?.token ?? 0);
    expect(ours.token).toBe(tokens.at(-2));
    await theirs?.unlock();
    await ours.release().catch(() => {});
  }
  expect(tokens).toEqual([1, 2, 3, 4, 5, 6]);
  expect(await scene.redis.pttl(token)).toBe(-1);
});

test.each(["lock", "fencedLock", "fairLock"] as const)(
  "13: a %s treats a key without an expiry as held",
  async (kind) => {
    const [name, node] = [scene.name(), scene.node()];
    await scene.redis.hset(name, "00000000-0000-4000-8000-000000000000:1", "1");
    const lock = node.locks[kind](name);
    expect(await lock.tryAcquire()).toBeNull();
    const failure = await lock.acquire({ waitMs: 200 }).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(AcquireTimeoutError);
    expect((failure as AcquireTimeoutError).holder).toMatchObject({ leaseLeftMs: Infinity });
    expect(await scene.redis.pttl(name), "nothing is changed of another's").toBe(-1);
  },
);

test("15: a multi-lock acquires its members in one order, so opposite orders do not deadlock", async () => {
  const names = [scene.name(), scene.name(), scene.name()];
  const services = [scene.node(), scene.node()];
  let inside = 0;
  const rounds = services.map(async ({ locks }, i) => {
    const multi = locks.multiLock(i === 0 ? names : names.toReversed());
    for (let round = 0; round < 10; round += 1) {
      await multi.run(
        () => {
          inside += 1;
          expect(inside).toBe(1);
          inside -= 1;
        },
        { waitMs: 15_000 },
      );
    }
  });
  await Promise.all(rounds);
  expect(await scene.redis.exists(...names)).toBe(0);
});

test("15: losing a member ends the multi-lock, frees the other members, and harms no other holder", () =>
  withLeaseInTime(async (leaseMs) => {
    const names = [scene.name(), scene.name()].toSorted() as [string, string];
    const [node, java] = [scene.node(), scene.java()];
    const lease = await node.locks.multiLock(names).acquire({ leaseMs });
    await java.forceUnlock({ type: "lock", name: names[0] });
    const theirs = await java.acquire({ type: "lock", name: names[0] }, { waitMs: 0, leaseMs: LONG_MS });
    await aborted(lease.signal);
    await vi.waitFor(async () => expect(await scene.redis.exists(names[1])).toBe(0), 10_000);
    expect(await scene.redis.pttl(names[0]), "as long as its holder has it").toBeGreaterThan(LONG_MS - 20_000);
    await expect(lease.release()).rejects.toBeInstanceOf(LeaseLostError);
    expect(await theirs?.unlock()).toBe(true);
  }, 900));

test("15: a multi-lock waits for a member that Java holds, and is woken", async () => {
  const names = [scene.name(), scene.name()] as const;
  const [node, java] = [scene.node(), scene.java()];
  const theirs = await java.acquire({ type: "lock", name: names[1] }, { waitMs: 0, leaseMs: LONG_MS });
  expect(await node.locks.multiLock(names).tryAcquire()).toBeNull();
  const waiting = node.locks.multiLock(names).acquire({ waitMs: WOKEN_MS });
  await scene.listening(lockChannel(names[1]));
  await theirs?.unlock();
  const lease = await waiting;
  expect(await scene.redis.exists(...names)).toBe(2);
  expect(await lease.release()).toBe("released");
});

test("20: a grant that too few replicas confirm is released", async () => {
  const name = scene.name();
  const store = storeFor(scene.node().client, {
    conditions: { grace: undefined, replicas: { atLeast: 1, timeoutMs: 50 } },
  });
  const holdfast = createHoldfastOn(systemRuntime, { store, commandTimeoutMs: 1_000 });
  const locks = redisson(holdfast);
  for (const lock of [locks.lock(name), locks.fairLock(name), locks.readWriteLock(name).read]) {
    await expect(lock.acquire({ waitMs: 100 })).rejects.toBeInstanceOf(StoreError);
    await vi.waitFor(async () => expect(await scene.redis.exists(name)).toBe(0), 10_000);
  }
  await holdfast.close();
});

test("21: all waiters of a process share one subscription, and only one of them polls", async () => {
  const [name, node, java] = [scene.name(), scene.node(), scene.java()];
  const theirs = await java.acquire({ type: "lock", name }, { waitMs: 0, leaseMs: LONG_MS });
  const lock = node.locks.lock(name);
  const order: number[] = [];
  const rounds = Array.from({ length: 50 }, (_, i) => lock.run(() => void order.push(i), { waitMs: 15_000 }));
  await scene.listening(lockChannel(name));
  expect(await scene.redis.pubsub("NUMSUB", lockChannel(name))).toEqual([lockChannel(name), 1]);
  expect(node.sent.filter((script) => script === "acquire").length).toBeLessThan(5);
  await theirs?.unlock();
  await Promise.all(rounds);
  expect(order).toEqual(order.toSorted((a, b) => a - b));
});

test("an unlock whose reply was lost is retried and succeeds, and its latch is deleted", async () => {
  for (const kind of ["lock", "fairLock", "spinLock"] as const) {
    const [name, node, java] = [scene.name(), scene.node(), scene.java()];
    const lease = await node.locks[kind](name).acquire();
    node.loses = once(kind === "fairLock" ? "fair/release" : "release");
    const released = lease.release();
    const theirs = await java.acquire({ type: "lock", name }, { waitMs: 10_000 });
    expect(await released).toBe("released");
    expect(node.sent.filter((script) => script.endsWith("release"))).toHaveLength(2);
    await vi.waitFor(async () => expect(await scene.redis.keys(`*unlock_latch*${name}*`)).toEqual([]), 10_000);
    expect(await theirs?.unlock(), "who came next is not harmed by the second copy").toBe(true);
  }
});

test("the unlock latch matches Redisson's: value 1, an id of 32 hexadecimal digits, and an expiry", async () => {
  const [name, node] = [scene.name(), scene.node()];
  const lease = await node.locks.lock(name).acquire();
  let unlatch = (): void => {};
  node.before = ({ name: script }) =>
    script.endsWith("unlatch")
      ? new Promise<void>((resolve) => {
          unlatch = resolve;
        })
      : undefined;
  await lease.release();
  const [latch = ""] = await scene.redis.keys(`redisson_unlock_latch*${name}*`);
  expect(latch).toMatch(new RegExp(`^redisson_unlock_latch:\\{${name}\\}:[0-9a-f]{32}$`));
  expect(await scene.redis.get(latch)).toBe("1");
  expect(await scene.redis.pttl(latch)).toBeGreaterThan(10_000);
  unlatch();
});

test("a waiter notices a release between its first try and its subscription", async () => {
  const [name, node, java] = [scene.name(), scene.node(), scene.java()];
  const theirs = await java.acquire({ type: "lock", name }, { waitMs: 0, leaseMs: LONG_MS });
  node.beforeListening = async (channel) => {
    if (channel === lockChannel(name)) await theirs?.unlock();
  };
  await using lease = await node.locks.lock(name).acquire({ waitMs: WOKEN_MS });
  lease.assertHeld();
});

test("a waiter whose subscriber connection was killed is still notified", async () => {
  const [name, node, java] = [scene.name(), scene.node(), scene.java()];
  const theirs = await java.acquire({ type: "lock", name }, { waitMs: 0, leaseMs: LONG_MS });
  const waiting = node.locks.lock(name).acquire({ waitMs: WOKEN_MS });
  await scene.listening(lockChannel(name));
  await scene.redis.call("CLIENT", "KILL", "TYPE", "pubsub");
  await scene.listening(lockChannel(name));
  await theirs?.unlock();
  expect(await (await waiting).release()).toBe("released");
});

test("scripts are loaded again after the server has lost them", async () => {
  const [name, node] = [scene.name(), scene.node()];
  const lease = await node.locks.fairLock(name).acquire();
  await scene.redis.script("FLUSH");
  await lease.extend(20_000);
  expect(await lease.release()).toBe("released");
});

test("a wait that is aborted, or closed with its Holdfast, leaves nothing behind", async () => {
  for (const kind of ["lock", "fairLock"] as const) {
    const [name, node, java] = [scene.name(), scene.node(), scene.java()];
    const theirs = await java.acquire(
      { type: kind === "lock" ? "lock" : "fair", name },
      { waitMs: 0, leaseMs: LONG_MS },
    );
    const controller = new AbortController();
    const reason = new Error("enough");
    const first = node.locks[kind](name).acquire({ waitMs: Infinity, signal: controller.signal });
    const second = node.locks[kind](name).acquire({ waitMs: Infinity });
    first.catch(() => {});
    second.catch(() => {});
    await vi.waitFor(() => expect(node.sent.filter((script) => script.endsWith("acquire")).length).toBeGreaterThan(0));
    controller.abort(reason);
    await expect(first).rejects.toBe(reason);
    await node.holdfast.close();
    await expect(second).rejects.toMatchObject({ code: "ERR_LOCK_CLOSED" });
    expect((await scene.redis.keys(`*${name}*`)).toSorted()).toEqual([name]);
    expect(await theirs?.unlock()).toBe(true);
  }
});

test("a key of another type is refused and left unchanged", async () => {
  const [name, node, java] = [scene.name(), scene.node(), scene.java()];
  const { lock, fencedLock, fairLock, readWriteLock } = node.locks;
  const plain = [lock(name), fencedLock(name), fairLock(name)];
  const { read, write } = readWriteLock(name);
  const theirs = await java.acquire({ type: "read", name }, { waitMs: 0, leaseMs: LONG_MS });
  const before = await scene.redis.hgetall(name);
  for (const wrong of plain) {
    for (const ask of [
      () => wrong.tryAcquire(),
      () => wrong.acquire(),
      () => wrong.inspect(),
      () => wrong.forceRelease({ owner: "x" }),
    ]) {
      const failure = await ask().catch((error: unknown) => error);
      expect(failure).toBeInstanceOf(StoreError);
      expect(failure).toMatchObject({ transient: false, mayHaveRun: false });
      expect((failure as Error).message).toMatch(/is not a redisson\.[a-z-]+: it/);
    }
  }
  expect(await scene.redis.hgetall(name)).toEqual(before);
  await theirs?.unlock();

  const mutex = await java.acquire({ type: "lock", name }, { waitMs: 0, leaseMs: LONG_MS });
  for (const wrong of [read, write]) {
    await expect(wrong.acquire()).rejects.toThrow(/is not a redisson\.[a-z.-]+: it/);
    await expect(wrong.inspect()).rejects.toThrow(/is not a redisson\.[a-z.-]+: it/);
    await expect(wrong.forceRelease({ owner: "x" })).rejects.toThrow(/is not a redisson\.[a-z.-]+: it/);
  }
  await mutex?.unlock();
  await scene.redis.set(name, "1");
  for (const wrong of [...plain, read, write])
    await expect(wrong.acquire()).rejects.toThrow(/is not a redisson\.[a-z.-]+: it/);
  expect(await scene.redis.get(name)).toBe("1");
});

test("a client with a keyPrefix is refused because channels and derived keys would lack the prefix", async () => {
  const name = scene.name();
  const client = scene.node().client.duplicate({ keyPrefix: "svc:" });
  const holdfast = createHoldfastOn(systemRuntime, { redis: client });
  const { lock, fairLock, readWriteLock } = redisson(holdfast);
  const { read, write } = readWriteLock(name);
  for (const one of [lock(name), fairLock(name), read, write]) {
    await expect(one.acquire()).rejects.toBeInstanceOf(UnsupportedError);
    await expect(one.acquire()).rejects.toThrow(
      /adds its keyPrefix to the key .* Use the nameMapper of redisson instead/,
    );
  }
  expect(await scene.redis.keys(`*${name}*`)).toEqual([]);
  await holdfast.close();
  client.disconnect();
});

test("a force-release must name the holder, and is refused for any other owner or token", async () => {
  const [name, node] = [scene.name(), scene.node()];
  const fenced = node.locks.fencedLock(name);
  const lease = await fenced.acquire();
  const { holders, token } = await fenced.inspect();
  expect(holders).toMatchObject([{ owner: lease.owner, leaseLeftMs: expect.any(Number) }]);
  expect(token).toBe(lease.token);
  expect(await fenced.forceRelease({ owner: "somebody" })).toBe(false);
  expect(await fenced.forceRelease({ owner: lease.owner, token: lease.token + 1 })).toBe(false);
  await expect(node.locks.lock(name).forceRelease({ token: lease.token })).rejects.toBeInstanceOf(UnsupportedError);
  expect(await fenced.forceRelease({ owner: lease.owner, token: lease.token })).toBe(true);
  await expect(lease.release()).rejects.toBeInstanceOf(LeaseLostError);
});

test("a Java thread that entered three times frees the lock with its third unlock", async () => {
  const [name, node, java] = [scene.name(), scene.node(), scene.java()];
  const theirs = (await java.acquire({ type: "lock", name }, { waitMs: 0, leaseMs: LONG_MS })) as Held;
  await java.reenter(theirs, LONG_MS);
  await java.reenter(theirs, LONG_MS);
  const lock = node.locks.lock(name);
  const waiting = lock.acquire({ waitMs: WOKEN_MS });
  await scene.listening(lockChannel(name));
  for (const left of ["2", "1"]) {
    await theirs.unlock();
    expect(Object.values(await scene.redis.hgetall(name))).toEqual([left]);
    expect(await lock.tryAcquire()).toBeNull();
  }
  await theirs.unlock();
  expect(await (await waiting).release()).toBe("released");
});

test("15: members in opposite orders on both sides block each other only until a wait times out", async () => {
  const names = [scene.name(), scene.name()].toSorted() as [string, string];
  const [node, java] = [scene.node(), scene.java()];
  // Java acquires the members in the given order, which is the wrong one here.
  const second = (await java.acquire({ type: "lock", name: names[1] }, { waitMs: 0, leaseMs: LONG_MS })) as Held;
  const ours = node.locks.multiLock(names).acquire({ waitMs: 2_000 });
  const failure = ours.catch((error: unknown) => error);
  await scene.listening(lockChannel(names[1]));
  expect(await java.acquire({ type: "lock", name: names[0] }, { waitMs: 0 }), "ours has it meanwhile").toBeUndefined();
  const first = (await java.acquire({ type: "lock", name: names[0] }, { waitMs: WOKEN_MS, leaseMs: LONG_MS })) as Held;
  expect(await failure).toBeInstanceOf(AcquireTimeoutError);
  expect(first, "ours has given it back").toBeDefined();
  expect(await Promise.all([first.unlock(), second.unlock()])).toEqual([true, true]);
});

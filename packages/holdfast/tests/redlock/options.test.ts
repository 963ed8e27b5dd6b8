/** The options of `createHoldfast({ redlock })`, and the lock kinds that it supports. */
import { embedded } from "@holdfast/embedded";
import { Redis } from "ioredis";
import { expect, test } from "vitest";
import { createHoldfast, type Holdfast, UnsupportedError } from "../../src/index.js";

const stores = (count: number): object[] => Array.from({ length: count }, () => embedded());

test.each([3, 5, 7, 9])("a quorum may have %i servers", async (count) => {
  const holdfast = createHoldfast({ redlock: stores(count) });
  await holdfast.redlock("a").run((lease) => lease.assertHeld());
  await holdfast.close();
});

test.each([
  [0, /must have 3, 5, 7 or 9 servers: with fewer than 3, no majority is left when one fails; got 0/],
  [1, /got 1/],
  [2, /got 2/],
  [4, /4 servers tolerate no more failures than 3 do, and two callers can split the votes evenly; got 4/],
  [8, /8 servers tolerate no more failures than 7 do/],
  [11, /got 11/],
])("%i servers are refused, with the reason", (count, reason) => {
  expect(() => createHoldfast({ redlock: stores(count) })).toThrow(reason);
  expect(() => createHoldfast({ redlock: stores(count) })).toThrow(RangeError);
});

test("a quorum that lists one server twice is refused", () => {
  const [one, two] = stores(2) as [object, object];
  expect(() => createHoldfast({ redlock: [one, two, one] })).toThrow(
    /a different client for each server, because a server has one vote; client 2 is the same as client 0/,
  );
});

test.each([
  [{ redlock: "servers" }, /redlock must be an array of clients or stores; got "servers"/],
  [{ redlock: [{}, {}, {}] }, /`redlock\[0\]` must be a client of ioredis/],
  [
    { redlock: stores(3), failoverGrace: "off" },
    /failoverGrace must be "strict" or omitted with redlock, because .*; got "off"/,
  ],
  [{ redlock: stores(3), failoverGrace: "auto" }, /got "auto"/],
  [{ redlock: stores(3), replicas: { atLeast: 1, timeoutMs: 100 } }, /replicas cannot be combined with redlock/],
  [{ store: embedded(), failoverGrace: "strict" }, /`failoverGrace: "strict"` needs a client/],
  [{ store: embedded(), replicas: { atLeast: 1, timeoutMs: 100 } }, /`replicas` needs a client/],
  [{ redlock: stores(3), store: embedded() }, /exactly one of redis, store and redlock; got store and redlock/],
])("%o is refused", (options, reason) => {
  expect(() => createHoldfast(options as never)).toThrow(reason);
});

test("client objects can be passed instead of stores", () => {
  const clients = Array.from({ length: 3 }, () => new Redis({ lazyConnect: true }));
  expect(createHoldfast({ redlock: clients }).redlock("a").name).toBe("a");
});

const refused: [string, (holdfast: Holdfast) => unknown, RegExp][] = [
  ["mutex", (holdfast) => holdfast.mutex("a"), /The mutex "a" cannot be on several independent servers: its queue/],
  ["reentrantMutex", (holdfast) => holdfast.reentrantMutex("a"), /queue needs all requests in one order/],
  [
    "multiLock",
    (holdfast) => holdfast.multiLock(["a", "b"]),
    /could block each other forever, each with some of the servers/,
  ],
  [
    "semaphore",
    (holdfast) => holdfast.semaphore("a", { permits: 2 }),
    /two permits and three servers, three callers could each get a majority/,
  ],
  ["readWriteLock", (holdfast) => holdfast.readWriteLock("a"), /have not been shown to hold there/],
  [
    "countDownLatch",
    (holdfast) => holdfast.countDownLatch("a"),
    /needs one count, and each independent server has its own/,
  ],
  ["barrier", (holdfast) => holdfast.barrier("a", { parties: 2 }), /needs one count of its parties/],
  ["election", (holdfast) => holdfast.election("a"), /changes to a leader's value must be ordered by a single server/],
];

test.each(refused)("%s is refused on a quorum, with the reason", async (_, make, reason) => {
  const holdfast = createHoldfast({ redlock: stores(3) });
  expect(() => make(holdfast)).toThrow(UnsupportedError);
  expect(() => make(holdfast)).toThrow(reason);
  await holdfast.close();
});

test("pause and resume are refused on a quorum, with what to do instead", async () => {
  const holdfast = createHoldfast({ redlock: stores(3) });
  const refusal =
    /^"a" cannot be paused or resumed on several independent servers\. To block other callers, hold the lock/;
  await expect(holdfast.pause("a", { label: "why", by: "ana" })).rejects.toThrow(refusal);
  await expect(holdfast.resume("a", { by: "ana" })).rejects.toThrow(refusal);
  await holdfast.close();
});

test("redlock is refused on one server, and adopt on a quorum", async () => {
  const single = createHoldfast({ store: embedded() });
  expect(() => single.redlock("a")).toThrow(UnsupportedError);
  expect(() => single.redlock("a")).toThrow(/createHoldfast\(\{ redlock: \[a, b, c\] \}\)\. On one server, use mutex/);
  const exported = (await single.mutex("a").acquire()).export();
  const quorum = createHoldfast({ redlock: stores(3) });
  await expect(quorum.adopt(exported)).rejects.toThrow(UnsupportedError);
  await Promise.all([single.close(), quorum.close()]);
});

test("redlock() rejects an invalid name and a second argument", () => {
  const holdfast = createHoldfast({ redlock: stores(3) });
  expect(() => holdfast.redlock("")).toThrow(RangeError);
  expect(() => (holdfast.redlock as (...all: unknown[]) => unknown)("a", { leaseMs: 100 })).toThrow(TypeError);
});

test("`subscriber` is called for each server with its index", async () => {
  const asked: number[] = [];
  const clients = Array.from({ length: 3 }, () => ({
    evalSha: () => Promise.reject(new Error("away")),
    scriptLoad: () => Promise.reject(new Error("away")),
    on() {},
    off() {},
  }));
  const subscriber = (server: number): never => {
    asked.push(server);
    throw new Error("none today");
  };
  const holdfast = createHoldfast({ redlock: clients, subscriber, commandTimeoutMs: 50, allowEviction: true });
  await expect(holdfast.redlock("a").tryAcquire()).rejects.toMatchObject({ code: "ERR_LOCK_QUORUM" });
  expect(new Set(asked)).toEqual(new Set([0, 1, 2]));
  await holdfast.close();
});

test("stores shared by two Holdfasts are closed when both are closed", async () => {
  const servers = stores(3);
  const first = createHoldfast({ redlock: servers });
  const second = createHoldfast({ redlock: servers });
  await first.close();
  await second.redlock("a").run((lease) => lease.assertHeld());
  await second.close();
  await expect(createHoldfast({ redlock: servers }).redlock("a").tryAcquire()).rejects.toThrow(/closed/);
});

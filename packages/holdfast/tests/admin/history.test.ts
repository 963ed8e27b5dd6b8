/** The history of a name: programs record events, readers merge them into entries, and locks are not affected. */

import { randomUUID } from "node:crypto";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { hostname } from "node:os";
import { embedded } from "@holdfast/embedded";
import { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { type RedisServer, startRedis } from "../../../../tests/support/redis-server.js";
import {
  appendHistory,
  type HistoryTroubleEvent,
  type RecordOptions,
  readHistory,
  recordHistory,
} from "../../src/admin/index.js";
import { channels, type GrantEvent } from "../../src/core/events.js";
import { createHoldfast, type Holdfast, LeaseLostError } from "../../src/index.js";
import { LONG_MS, until } from "../../src/testing/delays.js";

let server: RedisServer;
let redis: Redis;
beforeAll(async () => {
  server = await startRedis();
  redis = new Redis(server.port, { maxRetriesPerRequest: 0, retryStrategy: () => 20 });
  redis.on("error", () => {});
});
afterAll(async () => {
  redis.disconnect();
  await server.stop();
});

const open: Holdfast[] = [];
afterEach(async () => {
  await Promise.all(open.splice(0).map((holdfast) => holdfast.close()));
});

function onRedis(prefix: string, options: object = {}): Holdfast {
  const holdfast = createHoldfast({ redis, prefix, clientName: "tester", ...options });
  open.push(holdfast);
  return holdfast;
}

function onEmbedded(): Holdfast {
  const holdfast = createHoldfast({ store: embedded({ keyPrefix: "app:" }), clientName: "tester" });
  open.push(holdfast);
  return holdfast;
}

describe.each([
  ["embedded", onEmbedded],
  ["Redis", () => onRedis(randomUUID())],
])("on %s", (_, make) => {
  test("a hold never ends before it began, although ages are rounded to milliseconds", async () => {
    const holdfast = make();
    const hold = { name: "deploy", kind: "mutex", owner: "a/1/30000/1", token: 7 } as const;
    await appendHistory(holdfast, { ...hold, what: "granted" });
    await appendHistory(holdfast, { ...hold, what: "released", heldMs: 0, agoMs: 1_000 });
    const [entry] = await readHistory(holdfast, { name: "deploy" });
    expect(entry).toMatchObject({ outcome: "released", grantedAtMs: entry?.atMs });
  });

  test("a hold is one entry: first held, then how it ended and after how long", async () => {
    const holdfast = make();
    const recorder = recordHistory(holdfast);
    const lease = await holdfast.mutex("deploy").acquire({ label: "release 4.2" });
    await recorder.flush();
    const whose = { name: "deploy", kind: "mutex", owner: lease.owner, token: lease.token, label: "release 4.2" };
    const here = { host: hostname(), pid: process.pid, clientName: "tester" };
    const [held, ...none] = await readHistory(holdfast, { name: "deploy" });
    expect(none).toEqual([]);
    expect(held).toMatchObject({ ...whose, ...here, outcome: "held", heldMs: undefined, waitedMs: expect.any(Number) });
    expect(Math.abs((held?.grantedAtMs ?? 0) - Date.now())).toBeLessThan(LONG_MS);

    await lease.release();
    await recorder.flush();
    const after = await readHistory(holdfast, { name: "deploy" });
    expect(after).toHaveLength(1);
    expect(after[0]).toMatchObject({ ...whose, ...here, outcome: "released", heldMs: expect.any(Number) });
    expect(after[0]?.atMs).toBeGreaterThanOrEqual(held?.atMs ?? Infinity);
    await recorder.stop();
    expect({ appended: recorder.appended, dropped: recorder.dropped }).toEqual({ appended: 2, dropped: 0 });
  });

  test("a hold written in one batch costs one event, and holds are listed newest first", async () => {
    const holdfast = make();
    const recorder = recordHistory(holdfast, { everyMs: 60_000 });
    const tokens: number[] = [];
    for (let i = 0; i < 5; i += 1) {
      await holdfast.mutex("often").run((lease) => void tokens.unshift(lease.token), { fairness: "strict" });
    }
    await recorder.stop();
    expect(recorder.appended).toBe(5);
    const entries = await readHistory(holdfast, { name: "often" });
    expect(entries.map(({ token, outcome }) => ({ token, outcome }))).toEqual(
      tokens.map((token) => ({ token, outcome: "released" })),
    );
    expect(await readHistory(holdfast, { name: "often", limit: 2 })).toEqual(entries.slice(0, 2));
    expect(await readHistory(holdfast, { name: "often", outcome: "lost" })).toEqual([]);
  });

  test("a start without an end shows as ending while its client is alive, because it may be about to record the end", async () => {
    const holdfast = make();
    const recorder = recordHistory(holdfast, { names: (name) => name !== "hidden" });
    const lease = await holdfast.semaphore("pool", { permits: 2 }).acquire();
    const hidden = await holdfast.mutex("hidden").acquire();
    await recorder.stop();
    expect((await readHistory(holdfast)).map(({ name, outcome }) => `${name} ${outcome}`)).toEqual(["pool held"]);
    await Promise.all([lease.release(), hidden.release()]);
    expect((await readHistory(holdfast)).map(({ name, outcome }) => `${name} ${outcome}`)).toEqual(["pool ending"]);
    expect(await readHistory(holdfast, { outcome: "expired" })).toEqual([]);
  });

  test("a start without an end shows as expired once its lease must be over and its client is gone", async () => {
    const holdfast = make();
    const granted = { name: "batch", kind: "mutex", what: "granted", agoMs: 60_000 } as const;
    await appendHistory(holdfast, { ...granted, owner: "gone/1/30000/1", token: 3 });
    await appendHistory(holdfast, { ...granted, owner: "gone/2/3600000/1", token: 4 });
    await holdfast.mutex("other").run(async (lease) => {
      // The client of this hold has a record, so it is alive.
      await appendHistory(holdfast, { ...granted, owner: lease.owner, token: 5 });
    });
    const entries = await readHistory(holdfast, { name: "batch" });
    expect(entries.map(({ token, outcome }) => [token, outcome])).toEqual([
      [5, "ending"],
      [4, "ending"],
      [3, "expired"],
    ]);
  });

  test("a re-entry is part of the same hold", async () => {
    const holdfast = make();
    const recorder = recordHistory(holdfast, { everyMs: 60_000 });
    const mutex = holdfast.reentrantMutex("again");
    await mutex.run(async () => {
      await mutex.run(async () => {});
      await recorder.flush();
      const [entry] = await readHistory(holdfast, { name: "again" });
      expect(entry).toMatchObject({ outcome: "held" });
    });
    await recorder.stop();
    const entries = await readHistory(holdfast, { name: "again" });
    expect(entries.map(({ outcome }) => outcome)).toEqual(["released"]);
  });

  test("force-releases, pauses and resumes name the caller, and the loss by the holder adds no entry", async () => {
    const holdfast = make();
    const recorder = recordHistory(holdfast);
    const lease = await holdfast.mutex("jammed").acquire();
    const lost = new Promise((resolve) => lease.signal.addEventListener("abort", resolve));
    await holdfast.mutex("jammed").forceRelease({ owner: lease.owner, by: "ana@ops-1", reason: "host is gone" });
    await lost;
    await expect(lease.release()).rejects.toThrow(LeaseLostError);
    await holdfast.pause("jammed", { label: "maintenance", by: "ana@ops-1" });
    await holdfast.resume("jammed", { by: "bo@ops-2" });
    await recorder.stop();
    const entries = await readHistory(holdfast, { name: "jammed" });
    expect(
      entries.map(({ outcome, by }) => ({ outcome, by })).toSorted((a, b) => (a.outcome < b.outcome ? -1 : 1)),
    ).toEqual([
      { outcome: "forced", by: "ana@ops-1" },
      { outcome: "paused", by: "ana@ops-1" },
      { outcome: "resumed", by: "bo@ops-2" },
    ]);
    expect(entries.find(({ outcome }) => outcome === "forced")).toMatchObject({
      owner: lease.owner,
      token: lease.token,
      reason: "host is gone",
      heldMs: expect.any(Number),
      pid: process.pid,
    });
  });

  test("entries that programs append are listed for all names and by pattern", async () => {
    const holdfast = make();
    await appendHistory(holdfast, {
      what: "skipped",
      kind: "mutex",
      name: "nightly:{1}",
      reason: "busy",
      agoMs: 5_000,
    });
    await appendHistory(holdfast, { what: "skipped", kind: "mutex", name: "}odd", reason: "paused" });
    const entries = await readHistory(holdfast, { outcome: "skipped" });
    expect(entries.map(({ name, reason, pid }) => ({ name, reason, pid }))).toEqual([
      { name: "}odd", reason: "paused", pid: process.pid },
      { name: "nightly:{1}", reason: "busy", pid: process.pid },
    ]);
    expect((entries[0]?.atMs ?? 0) - (entries[1]?.atMs ?? 0)).toBeGreaterThanOrEqual(5_000);
    expect((await readHistory(holdfast, { pattern: "night*" })).map(({ name }) => name)).toEqual(["nightly:{1}"]);
    expect(await readHistory(holdfast, { sinceMs: 4_000, name: "nightly:{1}" })).toEqual([]);
  });
});

test("a history is capped and expires", async () => {
  const prefix = randomUUID();
  const holdfast = onRedis(prefix);
  const { owner } = await holdfast.mutex("mine").acquire();
  const recorder = recordHistory(holdfast, { maxEntries: 10, keepMs: 60_000, everyMs: 60_000 });
  for (let turn = 0; turn < 30; turn += 1) {
    for (let i = 0; i < 12; i += 1) {
      const event: GrantEvent = {
        kind: "mutex",
        lockName: "hot",
        owner,
        token: 12 * turn + i + 1,
        waitedMs: 0,
        call: {},
      };
      channels.grant.publish(event);
    }
    await recorder.flush();
  }
  await recorder.stop();
  // Only ten events per flush are sent because more would push each other out.
  expect(recorder.appended).toBe(300);
  const key = `${prefix}:history:{hot}`;
  // The server trims whole blocks of up to a hundred entries.
  expect(await redis.xlen(key)).toBeLessThan(200);
  const leftMs = await redis.pttl(key);
  expect(leftMs).toBeGreaterThan(0);
  expect(leftMs).toBeLessThanOrEqual(60_000);
});

test("two Holdfasts in one process each record only their own locks", async () => {
  const [one, other] = [onRedis(randomUUID()), onRedis(randomUUID())];
  const recorders = [recordHistory(one), recordHistory(other)];
  await one.mutex("a").run(() => {});
  await other.pause("b", { label: "x", by: "y" });
  await Promise.all(recorders.map((recorder) => recorder.stop()));
  expect((await readHistory(one)).map(({ name }) => name)).toEqual(["a"]);
  expect((await readHistory(other)).map(({ name }) => name)).toEqual(["b"]);
});

test("a failed history write affects no lock, is retried, and is reported", async () => {
  const prefix = randomUUID();
  const holdfast = onRedis(prefix);
  const troubles: HistoryTroubleEvent[] = [];
  const listener = (event: unknown): void => void troubles.push(event as HistoryTroubleEvent);
  subscribe("holdfast:history", listener);
  try {
    // A key of another type makes every write fail.
    await redis.set(`${prefix}:history:{blocked}`, "x");
    const recorder = recordHistory(holdfast, { everyMs: 60_000 });
    await holdfast.mutex("blocked").run(() => {});
    await recorder.flush();
    expect(troubles).toMatchObject([{ name: "blocked", events: 1, dropped: false }]);
    expect(recorder).toMatchObject({ appended: 0, dropped: 0 });
    await redis.del(`${prefix}:history:{blocked}`);
    await recorder.flush();
    expect(recorder).toMatchObject({ appended: 1, dropped: 0 });

    await redis.set(`${prefix}:history:{blocked}`, "x");
    await holdfast.mutex("blocked").run(() => {});
    await recorder.stop();
    expect(recorder).toMatchObject({ appended: 1, dropped: 1 });
    expect(troubles.at(-1)).toMatchObject({ name: "blocked", events: 1, dropped: true });
  } finally {
    unsubscribe("holdfast:history", listener);
  }
});

test("an outage loses no history, however many writes fail: events are kept until the server is back", async () => {
  const own = await startRedis();
  const client = new Redis(own.port, { maxRetriesPerRequest: 0, retryStrategy: () => 20 });
  client.on("error", () => {});
  const holdfast = createHoldfast({ redis: client });
  try {
    const recorder = recordHistory(holdfast, { everyMs: 60_000 });
    await holdfast.mutex("before").run(() => {});
    await own.kill();
    for (let attempt = 0; attempt < 12; attempt += 1) await recorder.flush();
    expect(recorder.dropped).toBe(0);
    await own.restart();
    await until(async () => {
      await recorder.flush();
      return recorder.appended > 0;
    }, "the history is written");
    expect((await readHistory(holdfast, { name: "before" })).map(({ outcome }) => outcome)).toEqual(["released"]);
    await recorder.stop();
  } finally {
    await holdfast.close();
    client.disconnect();
    await own.stop();
  }
});

test("a throwing `names` function counts as dropped events, and the lock is still granted", async () => {
  const holdfast = onRedis(randomUUID());
  const names = (): boolean => {
    throw new Error("of the user's");
  };
  const recorder = recordHistory(holdfast, { names });
  await holdfast.mutex("a").run(() => {});
  await recorder.stop();
  expect(recorder).toMatchObject({ appended: 0, dropped: 2 });
});

test("the write buffer is bounded: the oldest events are dropped first and counted", async () => {
  const holdfast = onRedis(randomUUID());
  const recorder = recordHistory(holdfast, { everyMs: 60_000 });
  const { owner } = await holdfast.mutex("mine").acquire();
  await recorder.flush();
  // Publishes the events directly because that many real grants would take too long.
  for (let i = 0; i < 10_001; i += 1) {
    const event: GrantEvent = { kind: "mutex", lockName: `m${i % 11}`, owner, token: i + 1, waitedMs: 0, call: {} };
    channels.grant.publish(event);
  }
  const ofOne = Math.ceil(10_001 / 11);
  expect(recorder.dropped).toBe(ofOne);
  await recorder.stop();
  expect(recorder.appended).toBe(1 + 10_001 - ofOne);
  expect(await readHistory(holdfast, { name: "m0" })).toEqual([]);
  expect(await readHistory(holdfast, { name: "m1", limit: 10_000 })).toHaveLength(ofOne);
});

test("invalid options are refused with an error that names them", async () => {
  const holdfast = onRedis(randomUUID());
  const wrong = (options: object) => () => recordHistory(holdfast, options as RecordOptions);
  expect(wrong({ maxEntries: 5 })).toThrow(/maxEntries/);
  expect(wrong({ keepMs: 5 })).toThrow(/keepMs/);
  expect(wrong({ everyMs: 5 })).toThrow(/everyMs/);
  expect(wrong({ names: "a*" })).toThrow(/names must be a function/);
  expect(wrong({ name: "a" })).toThrow(/no option "name"/);
  const event = { what: "skipped", kind: "mutex", name: "a" } as const;
  await expect(appendHistory(holdfast, { ...event, what: "gone" as never })).rejects.toThrow(/what must be one of/);
  await expect(appendHistory(holdfast, { ...event, name: "" })).rejects.toThrow(/name must be/);
  await expect(appendHistory(holdfast, { ...event, reason: "x".repeat(2_000) })).rejects.toThrow(
    /reason must be at most/,
  );
  await expect(appendHistory(holdfast, { ...event, heldMs: -1 })).rejects.toThrow(/heldMs must be/);
  await expect(readHistory(holdfast, { outcome: "gone" as never })).rejects.toThrow(
    /outcome must be one or more of .*; got "gone"/,
  );
  await expect(readHistory(holdfast, { outcome: [] })).rejects.toThrow(/; got an empty array/);
  await expect(readHistory(holdfast, { limit: 0 })).rejects.toThrow(/limit/);
});

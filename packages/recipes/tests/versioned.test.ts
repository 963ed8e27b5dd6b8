/** `versioned` on a real server: values that are written by comparing versions. */
import { randomUUID } from "node:crypto";
import { embedded } from "@holdfast/embedded";
import { createHoldfast, type Holdfast } from "holdfast";
import { Redis } from "ioredis";
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { type RedisServer, startRedis } from "../../../tests/support/redis-server.js";
import { startProxy } from "../../../tests/support/tcp-proxy.js";
import { recipesVersionedWrite } from "../src/generated/scripts.js";
import { ConflictError, type UpdateOptions, type Versioned, versioned } from "../src/index.js";

// Long timeouts, because these tests do not measure time and the machine may be busy.
vi.setConfig({ testTimeout: 240_000, hookTimeout: 240_000 });
const eventually = { timeout: 60_000, interval: 10 };
const commandTimeoutMs = 60_000;
let server: RedisServer;
let redis: Redis;
let clients: Redis[];
let holdfast: Holdfast;
let other: Holdfast;
let name: string;

beforeAll(async () => {
  server = await startRedis();
  redis = new Redis({ port: server.port });
  clients = [new Redis({ port: server.port }), new Redis({ port: server.port })];
  [holdfast, other] = clients.map((client) => createHoldfast({ redis: client, commandTimeoutMs })) as [
    Holdfast,
    Holdfast,
  ];
});

afterAll(async () => {
  await Promise.all([holdfast?.close(), other?.close()]);
  for (const client of [redis, ...(clients ?? [])]) client?.disconnect();
  await server?.stop();
});

beforeEach(() => {
  name = randomUUID();
});

function pair<Value>(): [here: Versioned<Value>, there: Versioned<Value>] {
  return [versioned<Value>(holdfast, name), versioned<Value>(other, name)];
}

describe.each(["a server", "an embedded store"])("on %s", (where) => {
  let own: Holdfast;
  beforeAll(() => {
    own = where === "a server" ? holdfast : createHoldfast({ store: embedded(), commandTimeoutMs });
  });
  afterAll(async () => {
    if (own !== holdfast) await own.close();
  });

  test("a write with the current version succeeds, and any other returns the current value", async () => {
    const limits = versioned<{ rps: number }>(own, name);
    expect(await limits.get()).toEqual({ value: undefined, version: 0 });
    const created = await limits.compareAndSet(0, { rps: 1 });
    expect(created).toEqual({ ok: true, version: expect.any(Number) });
    expect(await limits.get()).toEqual({ value: { rps: 1 }, version: created.version });
    expect(await limits.compareAndSet(0, { rps: 2 })).toEqual({
      ok: false,
      value: { rps: 1 },
      version: created.version,
    });
    const changed = await limits.compareAndSet(created.version, { rps: 3 });
    expect(changed.version).toBeGreaterThan(created.version);
    expect(await limits.get()).toEqual({ value: { rps: 3 }, version: changed.version });
  });

  test("a value that was deleted and created again has a different version", async () => {
    const limits = versioned<string>(own, name);
    const { version: seen } = await limits.compareAndSet(0, "a");
    const { version: gone } = await limits.delete(seen);
    expect(gone).toBeGreaterThan(seen);
    expect(await limits.get()).toEqual({ value: undefined, version: gone });
    expect(await limits.compareAndSet(0, "b")).toEqual({ ok: false, value: undefined, version: gone });
    expect(await limits.compareAndSet(seen, "b")).toMatchObject({ ok: false });
    const { ok, version: back } = await limits.compareAndSet(gone, "a");
    expect([ok, back > gone]).toEqual([true, true]);
    expect(await limits.compareAndSet(seen, "c")).toEqual({ ok: false, value: "a", version: back });
    expect(await limits.delete(seen)).toMatchObject({ ok: false, version: back });
    expect(await limits.delete()).toMatchObject({ ok: true });
    const { version } = await limits.get();
    expect(await limits.delete()).toEqual({ ok: true, version });
  });

  test("versions rise with each write", async () => {
    const limits = versioned<number>(own, name);
    let last = 0;
    for (let n = 0; n < 50; n += 1) {
      const { version } = await limits.update(() => n);
      expect(version).toBeGreaterThan(last);
      last = version;
    }
  });

  test("conflicting updates retry until they succeed", async () => {
    const limits = versioned<number>(own, name);
    const options = { attemptsMax: 1_000, promoteAfter: 3 };
    await Promise.all(Array.from({ length: 20 }, () => limits.update((old) => (old ?? 0) + 1, options)));
    expect((await limits.get()).value).toBe(20);
  });
});

describe("an update", () => {
  test("that reaches `attemptsMax` reports its attempts and writes nothing", async () => {
    const [here, there] = pair<number>();
    await here.compareAndSet(0, 0);
    const change = vi.fn(async (old: number | undefined) => {
      await there.update((value) => (value ?? 0) + 1);
      return (old ?? 0) + 100;
    });
    const refused = await here.update(change, { attemptsMax: 3 }).catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(ConflictError);
    const { version } = await here.get();
    expect(refused).toMatchObject({ code: "ERR_LOCK_CONFLICT", attempts: 3, version, lockName: name });
    expect(change.mock.calls).toEqual([[0], [1], [2]]);
    expect((await here.get()).value).toBe(3);
  });

  test("that keeps conflicting acquires the mutex of that name and releases it", async () => {
    const [here, there] = pair<number>();
    const isHeld: boolean[] = [];
    const result = await here.update(
      async (old) => {
        const held = (await other.mutex(name).inspect()).holders.length > 0;
        isHeld.push(held);
        if (isHeld.length < 4) await there.update((value) => (value ?? 0) + 1);
        return (old ?? 0) + 100;
      },
      { promoteAfter: 2 },
    );
    expect(isHeld).toEqual([false, false, true, true]);
    expect(result).toEqual({ value: 103, version: (await there.get()).version });
    expect((await other.mutex(name).inspect()).holders).toEqual([]);
  });

  test("whose function throws stops immediately with that error", async () => {
    const [here] = pair<number>();
    const error = new Error("a bug");
    const change = vi.fn(() => {
      throw error;
    });
    await expect(here.update(change)).rejects.toBe(error);
    expect(change).toHaveBeenCalledTimes(1);
    expect(await here.get()).toEqual({ value: undefined, version: 0 });
  });

  test("ends when its signal aborts, in any phase", async () => {
    const [here, there] = pair<number>();
    const why = new Error("no longer");
    await expect(here.update(() => 1, { signal: AbortSignal.abort(why) })).rejects.toBe(why);
    const inChange = new AbortController();
    const aborting = here.update(
      () => {
        inChange.abort(why);
        return 1;
      },
      { signal: inChange.signal },
    );
    await expect(aborting).rejects.toBe(why);
    expect(await here.get()).toEqual({ value: undefined, version: 0 });

    const inPause = new AbortController();
    const conflict = async (): Promise<number> => {
      await there.update((value) => (value ?? 0) + 1);
      setImmediate(() => inPause.abort(why));
      return 100;
    };
    await expect(here.update(conflict, { signal: inPause.signal, attemptsMax: 1_000_000 })).rejects.toBe(why);

    const inWait = new AbortController();
    await using lease = await other.mutex(name).acquire();
    const waiting = here.update(
      async () => {
        await there.update((value) => (value ?? 0) + 1);
        return 100;
      },
      { signal: inWait.signal, promoteAfter: 1 },
    );
    const rejected = expect(waiting).rejects.toBe(why);
    await vi.waitFor(async () => expect((await other.mutex(name).inspect()).waiterCount).toBe(1), eventually);
    inWait.abort(why);
    await rejected;
    await vi.waitFor(async () => expect((await other.mutex(name).inspect()).waiterCount).toBe(0), eventually);
    lease.assertHeld();
    expect((await here.get()).value).toBeLessThan(100);
  });

  test("waits for the mutex for at most `waitMs`", async () => {
    const [here, there] = pair<number>();
    await using lease = await other.mutex(name).acquire();
    const waiting = here.update(
      async () => {
        await there.update((value) => (value ?? 0) + 1);
        return 100;
      },
      { waitMs: 1_000, promoteAfter: 1 },
    );
    await expect(waiting).rejects.toMatchObject({ code: "ERR_LOCK_ACQUIRE_TIMEOUT" });
    lease.assertHeld();
    expect((await here.get()).value).toBe(1);
  });
});

describe("a lost reply", () => {
  async function behindProxy(play: (local: Holdfast, proxy: Awaited<ReturnType<typeof startProxy>>) => Promise<void>) {
    const proxy = await startProxy(server.port);
    const client = new Redis({ port: proxy.port, retryStrategy: () => 20 });
    client.on("error", () => {});
    const local = createHoldfast({ redis: client, commandTimeoutMs });
    try {
      await versioned(local, `${name}:warm`).update(() => 1);
      await play(local, proxy);
    } finally {
      await local.close();
      client.disconnect();
      await proxy.close();
    }
  }
  const write = new RegExp(`^evalsha ${recipesVersionedWrite.sha1}`, "i");

  test("does not make a successful write look like a conflict", () =>
    behindProxy(async (local, proxy) => {
      const struck = proxy.cutBeforeReply(write);
      const written = await versioned<string>(local, name).compareAndSet(0, "mine");
      await struck;
      const { value, version } = await versioned<string>(other, name).get();
      expect([written, value]).toEqual([{ ok: true, version }, "mine"]);
    }));

  test("does not repeat a write, even if another client has written since", () =>
    behindProxy(async (local, proxy) => {
      const [, there] = pair<number>();
      await there.compareAndSet(0, 0);
      const struck = proxy.cutBeforeReply(write);
      const change = vi.fn((old: number | undefined) => (old ?? 0) + 1);
      proxy.refuse(false);
      const updating = versioned<number>(local, name).update(change);
      await struck;
      proxy.refuse(true);
      proxy.cutAll();
      await there.update((old) => (old ?? 0) + 1);
      proxy.refuse(false);
      await updating;
      expect(change).toHaveBeenCalledTimes(1);
      expect((await there.get()).value).toBe(2);
    }));

  test("does not repeat a write while its writer may retry, even if another client has a shorter timeout", () =>
    behindProxy(async (local, proxy) => {
      const client = new Redis({ port: server.port });
      const hasty = createHoldfast({ redis: client });
      const [, there] = pair<number>();
      await there.compareAndSet(0, 0);
      const struck = proxy.cutBeforeReply(write);
      const change = vi.fn((old: number | undefined) => (old ?? 0) + 1);
      const updating = versioned<number>(local, name).update(change);
      await struck;
      proxy.refuse(true);
      proxy.cutAll();
      // Simulates that half a minute has passed.
      const requests = `hf:versioned:{${name}}:requests`;
      for (const id of await redis.zrange(requests, "0", "-1")) await redis.zincrby(requests, -30_000_000, id);
      await versioned<number>(hasty, name).update((old) => (old ?? 0) + 1);
      proxy.refuse(false);
      await updating;
      expect(change).toHaveBeenCalledTimes(1);
      expect((await there.get()).value).toBe(2);
      await hasty.close();
      client.disconnect();
    }));

  test("of a deletion deletes once", () =>
    behindProxy(async (local, proxy) => {
      const { version } = await versioned<string>(other, name).compareAndSet(0, "a");
      const struck = proxy.cutBeforeReply(write);
      const deleted = await versioned<string>(local, name).delete(version);
      await struck;
      expect(deleted).toEqual({ ok: true, version: (await versioned<string>(other, name).get()).version });
    }));
});

describe("a watcher", () => {
  test("receives the current value and then each change or the last of several", async () => {
    const [here, there] = pair<number>();
    const seen: (number | undefined)[] = [];
    const controller = new AbortController();
    const watching = (async () => {
      for await (const { value } of here.watch({ signal: controller.signal })) seen.push(value);
    })();
    const ended = expect(watching).rejects.toThrow("enough");
    await vi.waitFor(() => expect(seen).toEqual([undefined]), eventually);
    for (let n = 1; n <= 20; n += 1) await there.update(() => n);
    await vi.waitFor(() => expect(seen.at(-1)).toBe(20), eventually);
    await there.delete();
    await vi.waitFor(() => expect(seen.at(-1)).toBe(undefined), eventually);
    const values = seen.slice(1, -1);
    expect(values).toEqual([...new Set(values)].sort((a, b) => Number(a) - Number(b)));
    controller.abort(new Error("enough"));
    await ended;
  });

  test("sees the last version after a reconnect, and never an older one", async () => {
    const proxy = await startProxy(server.port);
    const client = new Redis({ port: proxy.port, retryStrategy: () => 20 });
    client.on("error", () => {});
    const local = createHoldfast({ redis: client, commandTimeoutMs });
    const [, there] = pair<number>();
    await there.update(() => 0);
    const versions: number[] = [];
    let last: number | undefined;
    const watcher = versioned<number>(local, name).watch();
    const watching = (async () => {
      for await (const { value, version } of watcher) {
        versions.push(version);
        last = value;
      }
    })();
    for (let n = 1; n <= 5; n += 1) {
      await vi.waitFor(() => expect(last).toBe(n - 1), eventually);
      proxy.refuse(true);
      proxy.cutAll();
      // Several changes while the watcher is disconnected.
      await there.update(() => -1);
      await there.update(() => n);
      proxy.refuse(false);
    }
    await vi.waitFor(() => expect(last).toBe(5), eventually);
    expect(versions).toEqual([...new Set(versions)].sort((a, b) => a - b));
    await watcher.return();
    await watching;
    await local.close();
    client.disconnect();
    await proxy.close();
  });

  test("waits for a newer version if the server has lost the last ones", async () => {
    const [here] = pair<string>();
    await here.update(() => "old");
    const record = await redis.hgetall(`hf:versioned:{${name}}`);
    await here.update(() => "new");
    const seen: (string | undefined)[] = [];
    const watcher = here.watch();
    const watching = (async () => {
      for await (const { value } of watcher) seen.push(value);
    })();
    await vi.waitFor(() => expect(seen).toEqual(["new"]), eventually);
    await redis.hset(`hf:versioned:{${name}}`, record);
    await redis.publish(`hf:versioned:{${name}}:changed`, "0");
    await vi.waitFor(async () => expect((await here.get()).value).toBe("old"), eventually);
    await here.update((value) => `newer than ${value}`);
    await vi.waitFor(() => expect(seen.at(-1)).toBe("newer than old"), eventually);
    expect(seen).toEqual(["new", "newer than old"]);
    await watcher.return();
    await watching;
  });

  test("leaves nothing behind, and ends without an error when its Holdfast is closed", async () => {
    const client = new Redis({ port: server.port });
    const local = createHoldfast({ redis: client, commandTimeoutMs });
    const watcher = versioned<number>(local, name).watch();
    await watcher.next();
    const channel = `hf:versioned:{${name}}:changed`;
    await vi.waitFor(async () => expect(await redis.pubsub("NUMSUB", channel)).toContain(1), eventually);
    await watcher.return();
    await vi.waitFor(async () => expect(await redis.pubsub("NUMSUB", channel)).toContain(0), eventually);
    const another = versioned<number>(local, name).watch();
    await another.next();
    const next = another.next();
    await local.close();
    expect(await next).toEqual({ value: undefined, done: true });
    await expect(versioned<number>(local, name).watch().next()).rejects.toMatchObject({ code: "ERR_LOCK_CLOSED" });
    client.disconnect();
  });
});

test("a server that lost its data knows no version and never reuses one", async () => {
  const own = await startRedis();
  const client = new Redis({ port: own.port });
  const local = createHoldfast({ redis: client, commandTimeoutMs });
  const limits = versioned<number>(local, name);
  const { version: seen } = await limits.update(() => 1);
  await client.flushall();
  expect(await limits.compareAndSet(seen, 2)).toEqual({ ok: false, value: undefined, version: 0 });
  const { version } = await limits.update(() => 3);
  expect(version).toBeGreaterThan(seen);
  await local.close();
  client.disconnect();
  await own.stop();
});

test("while the server is down, reads and writes fail with a StoreError", async () => {
  const own = await startRedis();
  const client = new Redis({ port: own.port });
  client.on("error", () => {});
  const local = createHoldfast({ redis: client, commandTimeoutMs: 200 });
  const limits = versioned<number>(local, name);
  await own.stop();
  const change = vi.fn(() => 2);
  await expect(limits.get()).rejects.toMatchObject({ code: "ERR_LOCK_STORE" });
  await expect(limits.update(change)).rejects.toMatchObject({ code: "ERR_LOCK_STORE" });
  await expect(limits.compareAndSet(0, 1)).rejects.toMatchObject({ code: "ERR_LOCK_STORE" });
  expect(change).not.toHaveBeenCalled();
  await local.close();
  client.disconnect();
  await expect(limits.get()).rejects.toMatchObject({ code: "ERR_LOCK_CLOSED" });
  await expect(limits.compareAndSet(0, 1)).rejects.toMatchObject({ code: "ERR_LOCK_CLOSED" });
});

test("all keys except the value expire", async () => {
  const [here] = pair<number>();
  await here.update(() => 1);
  const record = `hf:versioned:{${name}}`;
  expect(await redis.pttl(record)).toBe(-1);
  expect(await redis.pttl(`${record}:requests`)).toBeGreaterThan(0);
  await here.delete();
  expect(await redis.pttl(record)).toBeGreaterThan(0);
  expect((await redis.keys(`*${name}*`)).sort()).toEqual([record, `${record}:requests`]);
  await here.update(() => 2);
  expect(await redis.pttl(record)).toBe(-1);
});

test("old request ids are removed", async () => {
  const [here] = pair<number>();
  const requests = `hf:versioned:{${name}}:requests`;
  await redis.zadd(requests, 1, "long ago");
  for (let n = 0; n < 10; n += 1) await here.update(() => n);
  expect(await redis.zcard(requests)).toBe(10);
});

test("the error for an invalid argument names it, and nothing is sent", async () => {
  const [here] = pair<unknown>();
  expect(() => versioned(holdfast, "")).toThrow("name must be 1 to 512 bytes");
  expect(() => versioned(holdfast, name, { codec: {} } as object)).toThrow("codec");
  expect(() => versioned(holdfast, name, { ttl: 1 } as object)).toThrow('there is no option "ttl"');
  await expect(here.compareAndSet(-1, 1)).rejects.toThrow("version must be a whole number");
  await expect(here.compareAndSet("1" as never, 1)).rejects.toThrow("version must be");
  await expect(here.compareAndSet(0, undefined)).rejects.toThrow("must not be undefined");
  await expect(here.compareAndSet(0, () => {})).rejects.toThrow("cannot be encoded");
  await expect(here.compareAndSet(0, "x".repeat(1_048_576))).rejects.toThrow("at most 1048576 bytes");
  await expect(here.delete(1.5)).rejects.toThrow("version must be a whole number");
  await expect(here.update(undefined as never)).rejects.toThrow("change must be a function");
  for (const [options, option] of [
    [{ attemptsMax: 0 }, "attemptsMax"],
    [{ promoteAfter: 0 }, "promoteAfter"],
    [{ waitMs: -1 }, "waitMs"],
    [{ signal: 5 }, "signal"],
    [{ retries: 5 }, "retries"],
  ] as const) {
    await expect(
      here.update(() => 1, options as unknown as UpdateOptions),
      option,
    ).rejects.toThrow(option);
  }
  await expect(here.watch({ since: 1 } as object).next()).rejects.toThrow('there is no option "since"');
  expect(await here.get()).toEqual({ value: undefined, version: 0 });
});

/** Fenced writes in Redis and in process, on a real server. */
import { randomUUID } from "node:crypto";
import { embedded, Keyspace } from "@holdfast/embedded";
import { createHoldfast, type Holdfast, type Lease } from "holdfast";
import { Redis } from "ioredis";
import { createClient } from "redis";
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { type Program, startProgram } from "../../../tests/support/program.js";
import { type RedisServer, startRedis } from "../../../tests/support/redis-server.js";
import { startProxy } from "../../../tests/support/tcp-proxy.js";
import { mappedKeys } from "../../holdfast/src/core/keys.js";
import { clusterSlot } from "../../holdfast/src/stores/cluster-slot.js";
import { recipesFenceSet } from "../src/generated/scripts.js";
import { ForeignLockError, fencedSet, fenceGuard, StaleTokenError } from "../src/index.js";

/** HOLDFAST_SOAK_WRITES=10000 runs the long version. */
const WRITES = Number(process.env.HOLDFAST_SOAK_WRITES ?? 300);

let server: RedisServer;
let redis: Redis;
let other: Redis;
let holdfast: Holdfast;
let key: string;

beforeAll(async () => {
  server = await startRedis();
  redis = new Redis({ port: server.port });
  other = new Redis({ port: server.port });
  holdfast = createHoldfast({ redis });
});

afterAll(async () => {
  await holdfast?.close();
  redis?.disconnect();
  other?.disconnect();
  await server?.stop();
});

beforeEach(() => {
  key = randomUUID();
});

const mark = (of: string = key): string => `hf:fence:mapped:{${of}}`;

/** Two successive holders of one lock. The first continues although its lease is over. */
async function sleeperAndNext(
  name: string = key,
  on: Holdfast = holdfast,
): Promise<{ readonly sleeper: Lease; readonly next: Lease }> {
  const sleeper = await on.mutex(name).acquire();
  await on.mutex(name).forceRelease({ token: sleeper.token });
  return { sleeper, next: await on.mutex(name).acquire() };
}

describe("a value in Redis", () => {
  test("accepts any number of writes from the latest holder and none from earlier holders", async () => {
    const { sleeper, next } = await sleeperAndNext();
    await fencedSet(redis, { key, value: "first", lease: sleeper });
    await fencedSet(other, { key, value: "second", lease: next });
    await fencedSet(other, { key, value: "third", lease: next });
    const late = fencedSet(redis, { key, value: "late", lease: sleeper });
    await expect(late).rejects.toThrow(StaleTokenError);
    await expect(late).rejects.toMatchObject({
      code: "ERR_LOCK_STALE_TOKEN",
      lockName: key,
      resource: key,
      token: sleeper.token,
      seen: next.token,
    });
    expect(await redis.get(key)).toBe("third");
    expect(await redis.get(mark())).toBe(`${next.token} ${key}`);
    await next.release();
    const last = await holdfast.mutex(key).acquire();
    await fencedSet(redis, { key, value: "last", lease: last });
    await expect(fencedSet(other, { key, value: "late", lease: next })).rejects.toThrow(StaleTokenError);
    expect(await redis.get(key)).toBe("last");
    await last.release();
  });

  test("belongs to one lock because tokens of different locks cannot be compared", async () => {
    const name = `two words ${key}`;
    await fencedSet(redis, { key, value: "mine", lease: { name, token: 5 } });
    const foreign = fencedSet(redis, { key, value: "theirs", lease: { name: "another", token: 9 } });
    await expect(foreign).rejects.toThrow(ForeignLockError);
    await expect(foreign).rejects.toMatchObject({ code: "ERR_LOCK_FOREIGN_LOCK", belongsTo: name, token: 9 });
    // The lock name is compared first, even if the other lock's token is lower.
    await expect(fencedSet(redis, { key, value: "", lease: { name: "another", token: 2 } })).rejects.toThrow(
      ForeignLockError,
    );
    expect(await redis.get(key)).toBe("mine");
  });

  test("distinguishes large tokens that differ by one", async () => {
    // Five times as large as today's tokens. With one more digit, a client library may round.
    const most = 9_000_000_000_000_001;
    const write = (token: number): Promise<void> =>
      fencedSet(redis, { key, value: String(token), lease: { name: key, token } });
    await write(most - 1);
    await write(most);
    await expect(write(most - 1)).rejects.toMatchObject({ seen: most, token: most - 1 });
    expect(await redis.get(key)).toBe(String(most));
  });

  test("keeps its mark in a separate key and stays a plain string", async () => {
    const lease = { name: key, token: 5 };
    await fencedSet(redis, { key: `a{${key}}b`, value: "tagged", lease });
    await fencedSet(redis, { key: `{${key}}`, value: "all tag", lease });
    await fencedSet(redis, { key, value: "bare", lease });
    const marks = [`hf:fence:mapped-tag:a{${key}}b`, `hf:fence:mapped-tag:{${key}}`, mark()];
    expect(await redis.exists(...marks)).toBe(3);
    expect(await redis.get(`a{${key}}b`)).toBe("tagged");
    // A plain client can read the value. A plain write is not fenced.
    await redis.set(key, "plain");
    await fencedSet(redis, { key, value: "fenced", lease });
    expect(await redis.type(key)).toBe("string");
  });

  test("never outlives its mark", async () => {
    const lease = { name: key, token: 5 };
    await fencedSet(redis, { key, value: "for a minute", lease, keepMs: 60_000 });
    const [value, seen] = await Promise.all([redis.pttl(key), redis.pttl(mark())]);
    expect(value).toBeGreaterThan(0);
    expect(seen).toBeGreaterThan(value + 3_600_000);
    await fencedSet(redis, { key, value: "for ever", lease });
    expect([await redis.pttl(key), await redis.pttl(mark())]).toEqual([-1, -1]);
    await fencedSet(redis, { key, value: "short", lease, keepMs: 1 });
    await vi.waitFor(async () => expect(await redis.exists(key)).toBe(0), { timeout: 15_000, interval: 10 });
    await expect(fencedSet(redis, { key, value: "late", lease: { ...lease, token: 4 } })).rejects.toThrow(
      StaleTokenError,
    );
  });

  test.each(["value", "a{tag}b", "{tag}", "{{tag}", "a{b}{c}", "{"])(
    "under key %s is in the same cluster slot as its mark",
    (text) => {
      expect(clusterSlot(mappedKeys("hf", "fence", text).base)).toBe(clusterSlot(text));
    },
  );

  test("can be written to the embedded store via its Holdfast", async () => {
    const local = createHoldfast({ store: embedded({ keyspace: new Keyspace() }) });
    const { sleeper, next } = await sleeperAndNext(key, local);
    await fencedSet(local, { key, value: "next", lease: next });
    await expect(fencedSet(local, { key, value: "late", lease: sleeper })).rejects.toThrow(StaleTokenError);
    await expect(fencedSet(local, { key, value: "", lease: { name: "x", token: 1 } })).rejects.toThrow(
      ForeignLockError,
    );
    await local.close();
    await expect(fencedSet(local, { key, value: "", lease: next })).rejects.toMatchObject({ code: "ERR_LOCK_CLOSED" });
  });

  test("can be written via any client with only the lock name and the token", async () => {
    const client = createClient({ socket: { host: "127.0.0.1", port: server.port } });
    await client.connect();
    await fencedSet(client, { key, value: "node-redis", lease: { name: key, token: 5 }, prefix: "app" });
    await expect(
      fencedSet(redis, { key, value: "late", lease: { name: key, token: 4 }, prefix: "app" }),
    ).rejects.toThrow(StaleTokenError);
    expect(await client.get(`app:fence:mapped:{${key}}`)).toBe(`5 ${key}`);
    client.destroy();
  });
});

describe("concurrent holders", () => {
  test(`write ${WRITES} times each, and no older write lands after the younger holder's first`, {
    timeout: 600_000,
  }, async () => {
    const { sleeper, next } = await sleeperAndNext();
    let begin = (): void => {};
    const halfway = new Promise<void>((resolve) => {
      begin = resolve;
    });
    let isYoungerDone = false;
    const write = async (client: Redis, lease: Lease, after: () => void): Promise<string> => {
      let outcomes = "";
      // The older holder continues until it is refused or the younger one is done, so that the two overlap.
      const goesOn = (): boolean => lease === sleeper && !outcomes.endsWith("s") && !isYoungerDone;
      for (let count = 0; count < WRITES || goesOn(); count += 1) {
        if (count === WRITES / 2) after();
        const value = `${lease.token} ${count}`;
        try {
          await fencedSet(client, { key, value, lease });
          const found = await client.get(key);
          // The value read back may come from a newer holder, but never from an earlier one.
          outcomes += found === value ? "w" : Number(found?.split(" ")[0]) > lease.token ? "o" : "X";
        } catch (error) {
          if (!(error instanceof StaleTokenError)) throw error;
          outcomes += "s";
        }
      }
      return outcomes;
    };
    const [older, younger] = await Promise.all([
      write(redis, sleeper, begin),
      halfway
        .then(() => write(other, next, () => {}))
        .finally(() => {
          isYoungerDone = true;
        }),
    ]);
    expect(older).toMatch(/^w+o?s+$/);
    expect(younger).toBe("w".repeat(WRITES));
    expect(await redis.get(key)).toBe(`${next.token} ${WRITES - 1}`);
    await next.release();
  });

  test("with fifty tokens leave the value of the highest token", async () => {
    const tokens = Array.from({ length: 50 }, (_, at) => 1_000 + ((at * 37) % 50));
    const ends = await Promise.allSettled(
      tokens.map((token, at) =>
        fencedSet(at % 2 === 0 ? redis : other, { key, value: String(token), lease: { name: key, token } }),
      ),
    );
    expect(await redis.get(key)).toBe("1049");
    for (const end of ends) if (end.status === "rejected") expect(end.reason).toBeInstanceOf(StaleTokenError);
  });
});

describe("a holder that freezes between its check and its write", { timeout: 120_000 }, () => {
  async function play(how: "plain" | "fenced"): Promise<{ answer: object; value: string | null }> {
    const late: Program = startProgram(new URL("./programs/writer.mjs", import.meta.url), { port: server.port });
    try {
      const checking = late.heard("checking");
      const answer = late.call<object>("set", { name: key, key, leaseMs: 2_000, how });
      await checking;
      // The program freezes itself, so its lease expires. Only then is this acquire granted.
      const next = await holdfast.mutex(key).acquire({ waitMs: 60_000 });
      await fencedSet(redis, { key, value: "next", lease: next });
      late.resume();
      const told = await answer;
      await next.release();
      return { answer: told, value: await redis.get(key) };
    } finally {
      await late.kill();
    }
  }

  test("overwrites a newer value if the write is not fenced", async () => {
    expect(await play("plain")).toMatchObject({ answer: { written: true, validForMs: 0 }, value: "late" });
  });

  test("is refused if the write is fenced", async () => {
    expect(await play("fenced")).toMatchObject({ answer: { error: "StaleTokenError", validForMs: 0 }, value: "next" });
  });

  test("and is then killed writes nothing, and the next holder can write", async () => {
    const dying = startProgram(new URL("./programs/writer.mjs", import.meta.url), { port: server.port });
    const checking = dying.heard("checking");
    const answer = dying.call("set", { name: key, key, leaseMs: 2_000, how: "fenced" }).catch(() => "killed");
    await checking;
    await dying.kill();
    expect(await answer).toBe("killed");
    const next = await holdfast.mutex(key).acquire({ waitMs: 60_000 });
    expect(await redis.get(key)).toBeNull();
    await fencedSet(redis, { key, value: "next", lease: next });
    expect(await redis.get(key)).toBe("next");
    await next.release();
  });
});

describe("network faults", () => {
  test.each(["reply", "request", "order"])(
    "a fault that affects the %s of a write does not change the result",
    async (what) => {
      const proxy = await startProxy(server.port);
      const client = new Redis({ port: proxy.port, retryStrategy: () => 20 });
      client.on("error", () => {});
      await fencedSet(client, { key, value: "first", lease: { name: key, token: 5 } });
      const isWrite = new RegExp(`^evalsha ${recipesFenceSet.sha1}`, "i");
      const struck =
        what === "reply"
          ? proxy.cutBeforeReply(isWrite)
          : what === "request"
            ? proxy.cutBeforeRequest(isWrite)
            : proxy.duplicate(isWrite);
      await fencedSet(client, { key, value: "second", lease: { name: key, token: 6 } });
      await struck;
      expect(await redis.get(key)).toBe("second");
      await expect(fencedSet(client, { key, value: "late", lease: { name: key, token: 5 } })).rejects.toThrow(
        StaleTokenError,
      );
      client.disconnect();
      await proxy.close();
    },
  );

  test("a delayed write of an old holder is refused after the next holder's write", async () => {
    const { sleeper, next } = await sleeperAndNext();
    const proxy = await startProxy(server.port);
    const slow = new Redis({ port: proxy.port });
    slow.on("error", () => {});
    await fencedSet(slow, { key, value: "first", lease: sleeper });
    const held = proxy.hold(new RegExp(`^evalsha ${recipesFenceSet.sha1}`, "i"));
    const late = fencedSet(slow, { key, value: "slow", lease: sleeper }).catch((error: unknown) => error);
    await held.reached;
    await fencedSet(redis, { key, value: "next", lease: next });
    held.release();
    expect(await late).toBeInstanceOf(StaleTokenError);
    expect(await redis.get(key)).toBe("next");
    await next.release();
    slow.disconnect();
    await proxy.close();
  });

  test("if the server does not reply, the error says that the write may have run", async () => {
    const proxy = await startProxy(server.port);
    const client = new Redis({ port: proxy.port });
    client.on("error", () => {});
    const local = createHoldfast({ redis: client, commandTimeoutMs: 100 });
    const first = { key, value: "first", lease: { name: key, token: 5 } };
    await vi.waitFor(() => fencedSet(local, first), { timeout: 15_000, interval: 10 });
    proxy.stall();
    await expect(fencedSet(local, { key, value: "second", lease: { name: key, token: 6 } })).rejects.toMatchObject({
      code: "ERR_LOCK_STORE",
      mayHaveRun: true,
      lockName: key,
    });
    await local.close();
    client.disconnect();
    await proxy.close();
  });
});

describe("a lock whose server lost its data", () => {
  async function withLockServer(play: (locks: Holdfast, its: Redis) => Promise<void>): Promise<void> {
    const own = await startRedis();
    const client = new Redis({ port: own.port });
    const locks = createHoldfast({ redis: client });
    await play(locks, client);
    await locks.close();
    client.disconnect();
    await own.stop();
  }

  test("gets higher tokens from the server clock, and the earlier holder is refused", () =>
    withLockServer(async (locks, its) => {
      const before = await locks.mutex(key).acquire();
      await fencedSet(redis, { key, value: "before", lease: before });
      await its.flushall();
      const next = await locks.mutex(key).acquire();
      await fencedSet(redis, { key, value: "next", lease: next });
      await expect(fencedSet(redis, { key, value: "late", lease: before })).rejects.toThrow(StaleTokenError);
      expect(await redis.get(key)).toBe("next");
      await next.release();
    }));

  test("and whose clock was set back is refused until an operator raises the token", () =>
    withLockServer(async (locks, its) => {
      const hourUs = 3_600_000_000;
      // Simulates a server clock that was ahead.
      await its.set(`hf:mutex:{${key}}:fence`, String(Date.now() * 1_000 + hourUs));
      const before = await locks.mutex(key).acquire();
      await fencedSet(redis, { key, value: "before", lease: before });
      await its.flushall();
      const next = await locks.mutex(key).acquire();
      const refused = await fencedSet(redis, { key, value: "next", lease: next }).catch((error: unknown) => error);
      expect(refused).toBeInstanceOf(StaleTokenError);
      expect(await redis.get(key)).toBe("before");
      await next.release();
      // The fix that docs/recipes/fenced-writes.md describes.
      await its.set(`hf:mutex:{${key}}:fence`, String((refused as StaleTokenError).seen), "PX", 86_400_000);
      const heir = await locks.mutex(key).acquire();
      await fencedSet(redis, { key, value: "heir", lease: heir });
      expect(await redis.get(key)).toBe("heir");
      await heir.release();
    }));
});

describe("an in-process guard", () => {
  const lease = (token: number, name = "file"): { name: string; token: number } => ({ name, token });

  test("accepts the latest holder any number of times and refuses earlier holders", async () => {
    const guard = fenceGuard();
    const { sleeper, next } = await sleeperAndNext();
    guard.check("file", sleeper);
    guard.check("file", next);
    guard.check("file", next);
    expect(() => guard.check("file", sleeper)).toThrow(StaleTokenError);
    expect(() => guard.check("file", lease(Number.MAX_SAFE_INTEGER))).toThrow(ForeignLockError);
    guard.check("another file", sleeper);
    guard.forget("file");
    guard.check("file", sleeper);
    expect(() => fenceGuard().check("file", sleeper)).not.toThrow();
    await next.release();
  });

  test("runs asynchronous writes one at a time and refuses a queued write that became stale", async () => {
    const guard = fenceGuard();
    const written: number[] = [];
    let open = (): void => {};
    const gate = new Promise<void>((resolve) => {
      open = resolve;
    });
    const first = guard.run("file", lease(1), async () => {
      await gate;
      written.push(1);
      return "first";
    });
    const late = guard.run("file", lease(1), () => written.push(-1)).catch((error: unknown) => error);
    const second = guard.run("file", lease(2), () => written.push(2));
    await expect(guard.run("file", lease(1), () => written.push(-2))).rejects.toThrow(StaleTokenError);
    await guard.run("another file", lease(1), () => written.push(0));
    expect(written).toEqual([0]);
    open();
    expect(await first).toBe("first");
    expect(await late).toBeInstanceOf(StaleTokenError);
    await second;
    expect(written).toEqual([0, 1, 2]);
  });

  test("runs a write immediately if the resource is idle, ahead of a newer holder in the same turn", async () => {
    const guard = fenceGuard();
    const written: string[] = [];
    const first = guard.run("file", lease(1), () => written.push("first"));
    guard.check("file", lease(2));
    written.push("next");
    await first;
    expect(written).toEqual(["first", "next"]);
  });

  test("rethrows the error of a write and runs the next write", async () => {
    const guard = fenceGuard();
    const error = new Error("disk full");
    const failing = guard.run("file", lease(1), () => Promise.reject(error));
    const next = guard.run("file", lease(2), () => "written");
    await expect(failing).rejects.toBe(error);
    expect(await next).toBe("written");
  });
});

test("repeated writes via one client add event listeners only once", async () => {
  const client = new Redis({ port: server.port });
  await fencedSet(client, { key, value: "1", lease: { name: key, token: 1 } });
  const before = ["close", "ready", "end", "error"].map((event) => client.listenerCount(event));
  for (let token = 2; token < 30; token += 1) await fencedSet(client, { key, value: "n", lease: { name: key, token } });
  expect(["close", "ready", "end", "error"].map((event) => client.listenerCount(event))).toEqual(before);
  client.disconnect();
});

test.each([
  [{ key: "" }, "key must be 1 to 512 bytes"],
  [{ key: "a}b" }, 'the first "}" in key must close'],
  [{ value: 5 }, "value must be a string; got 5"],
  [{ lease: undefined }, "lease must be a lease"],
  [{ lease: { name: "", token: 1 } }, "name must be 1 to 512 bytes"],
  [{ lease: { name: "a", token: 0 } }, "lease.token must be a whole number from 1"],
  [{ lease: { name: "a", token: "5" } }, "lease.token must be a whole number"],
  [{ keepMs: 0 }, "keepMs must be a whole number from 1"],
  [{ prefix: "" }, "prefix must be 1 to 64 bytes"],
  [{ ttl: 5 }, 'there is no option "ttl"'],
])("the error for an invalid option names the option: %o", async (options, message) => {
  const good = { key, value: "x", lease: { name: key, token: 1 } };
  await expect(fencedSet(redis, { ...good, ...options } as never)).rejects.toThrow(message);
  await expect(fencedSet(holdfast, { ...good, prefix: "hf" })).rejects.toThrow(
    "prefix can only be given with a client",
  );
  await expect(fencedSet({} as never, good)).rejects.toThrow(TypeError);
  expect(() => fenceGuard().check("", good.lease)).toThrow("resource must be 1 to 512 bytes");
  await expect(fenceGuard().run("a", good.lease, undefined as never)).rejects.toThrow("write must be a function");
  expect(await redis.exists(key, mark())).toBe(0);
});

test("fenced writes are not supported on a quorum of servers", async () => {
  const quorum = createHoldfast({ redlock: [redis, other, new Redis({ port: server.port, lazyConnect: true })] });
  await expect(fencedSet(quorum, { key, value: "x", lease: { name: key, token: 1 } })).rejects.toMatchObject({
    code: "ERR_LOCK_UNSUPPORTED",
  });
  await quorum.close();
});

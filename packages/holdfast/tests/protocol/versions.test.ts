/** Two major versions of the protocol under one prefix: which one works, how the other fails, and for how long. */
import { randomUUID } from "node:crypto";
import { embedded } from "@holdfast/embedded";
import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type RedisServer, startRedis } from "../../../../tests/support/redis-server.js";
import { clients } from "../../src/admin/index.js";
import { PROTOCOL, VERSION } from "../../src/client-record/client-record.js";
import { createHoldfast, type Holdfast, type HoldfastOptions, ProtocolError, type Store } from "../../src/index.js";
import { storeFor } from "../../src/stores/detect.js";
import { LONG_MS, until } from "../../src/testing/delays.js";
import { ROWS, scriptOf } from "../stores/rows.js";

/** Plain commands as scripts, because the embedded store runs nothing else. */
const HSET = scriptOf(
  "test/hset",
  "for i = 1, #ARGV, 2 do redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1]) end return 1",
);
const HGET = scriptOf("test/hget", "return {1, redis.call('HGET', KEYS[1], ARGV[1])}");
const DEL = scriptOf("test/del", "return redis.call('DEL', KEYS[1])");
const PTTL = scriptOf("test/pttl", "return redis.call('PTTL', KEYS[1])");

interface Side {
  readonly options: HoldfastOptions;
  /** The store that runs the raw commands. */
  readonly raw: Store;
  readonly close: () => Promise<unknown>;
}

let server: RedisServer;
beforeAll(async () => {
  server = await startRedis();
});
afterAll(() => server.stop());

const onServer = ROWS.filter(({ name }) => ["ioredis 6", "node-redis 6", "GLIDE 2.5"].includes(name)).map(
  (row): readonly [string, () => Promise<Side>] => [
    row.name,
    async () => {
      const redis = await row.connect(server.port);
      const subscriber = row.subscriber(server.port);
      const raw = storeFor(redis as never, { ...(subscriber && { subscriber }) } as never);
      return {
        options: { redis, ...(subscriber && { subscriber }) } as HoldfastOptions,
        raw,
        close: async () => {
          await raw.close();
          await row.disconnect(redis);
        },
      };
    },
  ],
);

describe.each<readonly [string, () => Promise<Side>]>([
  ...onServer,
  [
    "embedded",
    async () => {
      const store = embedded();
      // A store is closed with the last Holdfast on it.
      const last = createHoldfast({ store });
      return { options: { store }, raw: store, close: () => last.close() };
    },
  ],
])("on %s", (_name, open) => {
  let side: Side;
  beforeAll(async () => {
    side = await open();
  });
  afterAll(() => side.close());

  async function withPrefix(play: (prefix: string, make: () => Holdfast) => Promise<void>): Promise<void> {
    const prefix = randomUUID();
    const made: Holdfast[] = [];
    const make = (): Holdfast => {
      const holdfast = createHoldfast({ ...side.options, prefix });
      made.push(holdfast);
      return holdfast;
    };
    try {
      await play(prefix, make);
    } finally {
      await Promise.all(made.map((holdfast) => holdfast.close()));
    }
  }

  const set = (key: string, ...words: (string | number)[]): Promise<unknown> =>
    side.raw.run(HSET, [key], words, LONG_MS);
  const mark = (prefix: string, protocol: string, untilMs: number): Promise<unknown> =>
    set(`${prefix}:protocol`, protocol, `${untilMs - 60_000} ${untilMs} a-client-of-${protocol} ${protocol}.3.4`);
  const field = async (key: string, name: string): Promise<unknown> =>
    ((await side.raw.run(HGET, [key], [name], LONG_MS)) as unknown[])[1];

  test("a client that finds a newer protocol in use fails with its details and holds nothing", () =>
    withPrefix(async (prefix, make) => {
      await set(`${prefix}:client:a-client-of-2`, "host", "web-9", "pid", 77, "name", "", "version", "2.3.4");
      await mark(prefix, "2", Date.now() + 60_000);
      const holdfast = make();
      const refused = {
        name: "ProtocolError",
        code: "ERR_LOCK_PROTOCOL",
        lockName: "job",
        ...{ protocol: PROTOCOL, otherProtocol: 2, version: VERSION, otherVersion: "2.3.4" },
        ...{ clientId: "a-client-of-2", host: "web-9", pid: 77 },
      };
      const mutex = holdfast.mutex("job");
      await expect(mutex.acquire()).rejects.toMatchObject(refused);
      await expect(mutex.tryAcquire()).rejects.toMatchObject(refused);
      await expect(mutex.run(() => "worked")).rejects.toBeInstanceOf(ProtocolError);
      await expect(holdfast.semaphore("job", { permits: 2 }).acquire()).rejects.toMatchObject(refused);
      await expect(holdfast.readWriteLock("job").read.acquire()).rejects.toMatchObject(refused);
      await expect(holdfast.election("job").campaign("x")).rejects.toMatchObject(refused);
      await expect(holdfast.countDownLatch("job").await()).rejects.toMatchObject(refused);
      await expect(holdfast.pause("job", { by: "me", label: "x" })).rejects.toMatchObject(refused);
      expect(await mutex.inspect(), "nothing is left behind").toMatchObject({ holders: [], waiterCount: 0 });
      expect(await field(`${prefix}:protocol`, String(PROTOCOL)), "and the newer protocol stays in use").toBeNull();

      await side.raw.run(DEL, [`${prefix}:protocol`], [], LONG_MS);
      expect(await mutex.run(() => "worked"), "when it is gone, without a restart").toBe("worked");
    }));

  test("an expired mark is ignored and removed", () =>
    withPrefix(async (prefix, make) => {
      await mark(prefix, "2", Date.now() - 60_000);
      expect(
        await make()
          .mutex("job")
          .run(() => "worked"),
      ).toBe("worked");
      expect(await field(`${prefix}:protocol`, "2")).toBeNull();
    }));

  test("a mark of protocol 0 and an unreadable mark refuse nothing", () =>
    withPrefix(async (prefix, make) => {
      await mark(prefix, "0", Date.now() + 60_000);
      await set(`${prefix}:protocol`, "3", "soon");
      expect(
        await make()
          .mutex("job")
          .run(() => "worked"),
      ).toBe("worked");
    }));

  test("the mark of a protocol lasts as long as the longest-lived record of its clients", () =>
    withPrefix(async (prefix, make) => {
      const [first, second] = [make(), make()];
      const lease = await first.mutex("job").acquire({ leaseMs: 600_000 });
      await second.mutex("other").run(() => {}, { leaseMs: 1_000 });
      await until(async () => (await field(`${prefix}:protocol`, "1")) !== null, "a mark");
      const [seen, last, clientId, version] = String(await field(`${prefix}:protocol`, "1")).split(" ");
      expect(Number(last) - Number(seen)).toBeGreaterThan(600_000);
      expect([clientId, version]).toEqual([expect.stringMatching(/^[\w-]{16}$/), VERSION]);
      expect(await side.raw.run(PTTL, [`${prefix}:protocol`], [], LONG_MS)).toBeGreaterThan(600_000);
      await lease.release();
    }));

  test("a client record states the protocol, and a record without one counts as protocol 0", () =>
    withPrefix(async (prefix, make) => {
      const holdfast = make();
      await set(`${prefix}:client:an-old-client`, "host", "web-1", "pid", 7, "name", "", "version", "0.0.9");
      const lease = await holdfast.mutex("job").acquire();
      await until(async () => (await clients(holdfast)).filter(({ host }) => host !== undefined).length === 2, "both");
      const protocols = (await clients(holdfast)).map(({ version, protocol }) => `${version} ${protocol}`);
      expect(protocols.toSorted()).toEqual(["0.0.9 0", `${VERSION} 1`]);
      await lease.release();
    }));
});

test("a mark on one server of a quorum refuses the lock, even with allowEviction", async () => {
  const others = await Promise.all([startRedis(), startRedis()]);
  const redises = [server, ...others].map(({ port }) => new Redis(port));
  const prefix = randomUUID();
  // Stores skip the failover grace, during which newly started servers grant nothing.
  const holdfast = createHoldfast({ redlock: redises.map((redis) => storeFor(redis)), prefix, allowEviction: true });
  try {
    const untilMs = Date.now() + 60_000;
    await redises[0]?.hset(`${prefix}:protocol`, "2", `${Date.now()} ${untilMs} two 2.0.0`);
    await expect(holdfast.redlock("job").acquire()).rejects.toMatchObject({
      code: "ERR_LOCK_PROTOCOL",
      clientId: "two",
    });
    for (const redis of redises)
      await until(async () => (await redis.exists(`${prefix}:redlock:{job}`)) === 0, "nothing");
    await redises[0]?.del(`${prefix}:protocol`);
    expect(await holdfast.redlock("job").run(() => "worked")).toBe("worked");
    for (const redis of redises) expect(await redis.hexists(`${prefix}:protocol`, "1")).toBe(1);
  } finally {
    await holdfast.close();
    for (const redis of redises) redis.disconnect();
    await Promise.all(others.map((one) => one.stop()));
  }
});

test("a client checks the protocol along with its first request and never again", async () => {
  const prefix = randomUUID();
  const redis = new Redis(server.port);
  const sent: string[] = [];
  const store = storeFor(redis);
  const watched: Store = {
    ...store,
    kind: store.kind,
    run: (script, keys, args, timeoutMs) => {
      sent.push(script.name);
      return store.run(script, keys, args, timeoutMs);
    },
    inbox: (channel, onMessage, timeoutMs) => store.inbox(channel, onMessage, timeoutMs),
    onReconnect: (listener) => store.onReconnect(listener),
    close: () => store.close(),
  };
  const holdfast = createHoldfast({ store: watched, prefix });
  try {
    const acquiring = holdfast.mutex("job").acquire();
    expect(sent.filter((name) => /mark|acquire/.test(name)).toSorted()).toEqual([
      "client-record/mark",
      "mutex/acquire",
    ]);
    await (await acquiring).release();
    for (let i = 0; i < 10; i += 1) await holdfast.mutex("job").run(() => {});
    expect(sent.filter((name) => name === "client-record/mark")).toHaveLength(1);
  } finally {
    await holdfast.close();
    redis.disconnect();
  }
});

test("a failed protocol check refuses nothing", async () => {
  const prefix = randomUUID();
  const redis = new Redis(server.port);
  await redis.set(`${prefix}:protocol`, "no hash");
  const holdfast = createHoldfast({ redis, prefix });
  try {
    for (let i = 0; i < 3; i += 1) expect(await holdfast.mutex("job").run(() => "worked")).toBe("worked");
  } finally {
    await holdfast.close();
    redis.disconnect();
  }
});

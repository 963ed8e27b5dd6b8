/** `holdfast/mutex`: the same locks as the mutexes of `createHoldfast`, with less code. */
import { once } from "@holdfast/recipes";
import { createHoldfast, type Holdfast } from "holdfast";
import { type Client, createMutexes, ioredis, type Mutexes, nodeRedis } from "holdfast/mutex";
import { Redis } from "ioredis";
import { createClient } from "redis";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { type RedisServer, startRedis } from "../../../../tests/support/redis-server.js";

let server: RedisServer;
let redis: Redis;
let node: ReturnType<typeof createClient>;

beforeAll(async () => {
  server = await startRedis();
  redis = new Redis(server.port);
  node = createClient({ socket: { port: server.port } });
  await node.connect();
});

afterAll(async () => {
  redis.disconnect();
  node.destroy();
  await server.stop();
});

describe.each<[string, () => Client]>([
  ["ioredis", () => ioredis(redis)],
  ["node-redis", () => nodeRedis(node)],
])("mutexes on %s", (library, clientOf) => {
  let mutexes: Mutexes;
  let holdfast: Holdfast;

  beforeEach(() => {
    mutexes = createMutexes({ client: clientOf(), leaseMs: 20_000 });
    holdfast = createHoldfast({ redis });
  });

  afterEach(async () => {
    await mutexes.close();
    await holdfast.close();
  });

  test("are the same locks as those that createHoldfast creates with the same names", async () => {
    const lease = await mutexes.mutex(`${library} shared`).acquire();
    expect(await holdfast.mutex(`${library} shared`).tryAcquire()).toBeNull();
    const waiting = holdfast.mutex(`${library} shared`).acquire();
    expect(await lease.release()).toBe("released");
    const next = await waiting;
    expect(next.token).toBeGreaterThan(lease.token);
    expect(await mutexes.mutex(`${library} shared`).tryAcquire()).toBeNull();
    await next.release();
  });

  test("adopt an exported lease of a mutex, but not of a semaphore", async () => {
    const lease = await holdfast.mutex(`${library} adopted`).acquire();
    const adopted = await mutexes.adopt(lease.export());
    expect(mutexes.held().map(({ name }) => name)).toEqual([`${library} adopted`]);
    expect(await adopted.release()).toBe("released");
    const semaphore = await holdfast.semaphore(`${library} permits`, { permits: 2 }).acquire();
    await expect(mutexes.adopt(semaphore.export())).rejects.toThrow("kind must be mutex");
    await semaphore.release();
  });

  test("work with a recipe", async () => {
    const answer = await once(mutexes as Holdfast, `${library} answer`, async () => 7);
    expect(answer).toMatchObject({ value: 7, replayed: false });
  });
});

test("the subscriber connection is the one that `subscriber` creates", async () => {
  const own = redis.duplicate({ lazyConnect: true });
  const mutexes = createMutexes({ client: ioredis(redis, { subscriber: () => own }) });
  const holdfast = createHoldfast({ redis });
  const held = await holdfast.mutex("subscribed").acquire();
  const waiting = mutexes.mutex("subscribed").acquire();
  await expect.poll(() => own.status).toBe("ready");
  await held.release();
  await (await waiting).release();
  await mutexes.close();
  await expect.poll(() => own.status).toBe("end");
  await holdfast.close();
});

test("an invalid option is refused, and the error names it", () => {
  const of = (options: unknown) => () => createMutexes(options as never);
  expect(of(undefined)).toThrow("createMutexes needs client: the result of ioredis(…) or nodeRedis(…); got undefined");
  expect(of({ client: redis })).toThrow("createMutexes needs client");
  expect(of({ client: ioredis(redis), prefix: "a b" })).toThrow("prefix");
  expect(of({ client: ioredis(redis), redlock: [] })).toThrow("redlock");
  expect(of({ client: ioredis(redis), leaseMs: 1 })).toThrow("leaseMs");
  expect(() => ioredis(node)).toThrow("ioredis needs an ioredis or iovalkey client of one server");
  expect(() => nodeRedis(redis)).toThrow("nodeRedis needs a node-redis client or pool of one server");
  expect(() => ioredis(new Redis.Cluster([server.port], { lazyConnect: true }))).toThrow("of one server");
  expect(() => ioredis(null as never)).toThrow("got null");
  expect(() => nodeRedis("redis://localhost" as never)).toThrow("nodeRedis needs a node-redis client");
});

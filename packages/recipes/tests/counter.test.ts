/** The guarded counter, on a real server. */
import { randomUUID } from "node:crypto";
import { embedded, Keyspace } from "@holdfast/embedded";
import { createHoldfast, type Holdfast, UnsupportedError } from "holdfast";
import { Redis } from "ioredis";
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { startProgram } from "../../../tests/support/program.js";
import { type RedisServer, startRedis } from "../../../tests/support/redis-server.js";
import { startProxy, type TcpProxy } from "../../../tests/support/tcp-proxy.js";
import { recipesCounterChange } from "../src/generated/scripts.js";
import { CounterRequestError, counter } from "../src/index.js";

const isChange = new RegExp(`^evalsha ${recipesCounterChange.sha1}`, "i");
const FAULTS = ["cutBeforeReply", "duplicate", "cutBeforeRequest", "cutBeforeReply", "cutBeforeReply"] as const;
const eventually = { timeout: 15_000, interval: 10 };

let server: RedisServer;
let redis: Redis;
let holdfast: Holdfast;
let name: string;

beforeAll(async () => {
  server = await startRedis();
  redis = new Redis({ port: server.port });
  holdfast = createHoldfast({ redis });
});

afterAll(async () => {
  await holdfast?.close();
  redis?.disconnect();
  await server?.stop();
});

beforeEach(() => {
  name = randomUUID();
});

/** A client behind a proxy. As usual for ioredis, it resends requests that were in flight when its connection broke. */
async function behindProxy(): Promise<{ proxy: TcpProxy; local: Holdfast; end: () => Promise<void> }> {
  const proxy = await startProxy(server.port);
  const client = new Redis({ port: proxy.port, retryStrategy: () => 5, maxRetriesPerRequest: null });
  client.on("error", () => {});
  const local = createHoldfast({ redis: client });
  return {
    proxy,
    local,
    async end() {
      await local.close();
      client.disconnect();
      await proxy.close();
    },
  };
}

describe.each(["a server", "the embedded store"])("a count on %s", (where) => {
  let on: Holdfast;
  beforeAll(() => {
    on = where === "a server" ? holdfast : createHoldfast({ store: embedded({ keyspace: new Keyspace() }) });
  });
  afterAll(async () => {
    if (on !== holdfast) await on.close();
  });

  test("can be raised, and lowered only as far as its minimum", async () => {
    const stock = counter(on, name);
    expect(await stock.read()).toBe(0);
    expect(await stock.take(1, { requestId: "early" })).toBeNull();
    expect(await stock.put(10, { requestId: "delivery" })).toBe(10);
    expect(await stock.take(7, { requestId: "a" })).toBe(3);
    expect(await stock.take(4, { requestId: "b" })).toBeNull();
    expect(await stock.take(3, { requestId: "c" })).toBe(0);
    expect(await stock.put(7, { requestId: "a:cancel" })).toBe(7);
    expect(await stock.read()).toBe(7);
    expect(stock.name).toBe(name);
  });

  test("remembers a request for as long as it may be resent, even if `keepMs` is shorter", async () => {
    const stock = counter(on, name, { keepMs: 1_000 });
    await stock.put(1, { requestId: "a" });
    await new Promise((resolve) => setTimeout(resolve, 1_100));
    expect(await stock.put(1, { requestId: "a" }), "the same request").toBe(1);
  });

  test("gives a repeated request its first reply and does not change", async () => {
    const stock = counter(on, name);
    for (let times = 0; times < 3; times += 1) expect(await stock.take(1, { requestId: "too early" })).toBeNull();
    for (let times = 0; times < 3; times += 1) expect(await stock.put(5, { requestId: "delivery" })).toBe(5);
    for (let times = 0; times < 3; times += 1) expect(await stock.take(2, { requestId: "a" })).toBe(3);
    expect(await stock.take(1, { requestId: "b" })).toBe(2);
    expect(await stock.take(2, { requestId: "a" })).toBe(3);
    // Still refused although there is enough now, because the caller has already acted on the refusal.
    expect(await stock.take(1, { requestId: "too early" })).toBeNull();
    expect(await stock.read()).toBe(2);
  });

  test("refuses an id that was used for a different request", async () => {
    const stock = counter(on, name);
    await stock.put(5, { requestId: "a" });
    const undone = stock.take(5, { requestId: "a" });
    await expect(undone).rejects.toThrow(CounterRequestError);
    await expect(undone).rejects.toMatchObject({ code: "ERR_LOCK_COUNTER_REQUEST", requestId: "a", first: 5 });
    await expect(undone).rejects.toThrow("was used before to put 5, and now to take 5");
    await expect(stock.put(6, { requestId: "a" })).rejects.toThrow(CounterRequestError);
    expect(await counter(on, `${name}:other`).put(1, { requestId: "a" })).toBe(1);
    expect(await stock.read()).toBe(5);
  });

  test("can have a positive or negative minimum", async () => {
    const reserve = counter(on, name, { min: 2 });
    await reserve.put(4, { requestId: "p" });
    expect(await reserve.take(3, { requestId: "a" })).toBeNull();
    expect(await reserve.take(2, { requestId: "b" })).toBe(2);
    expect(await counter(on, name, { min: -3 }).take(5, { requestId: "c" })).toBe(-3);
    // A count that is already below the minimum can be raised but not lowered.
    expect(await reserve.put(1, { requestId: "q" })).toBe(-2);
    expect(await reserve.take(1, { requestId: "d" })).toBeNull();
    expect(await reserve.read()).toBe(-2);
  });

  test("is exact up to its maximum and cannot exceed it", async () => {
    const most = 1_000_000_000_000_000;
    const stock = counter(on, name);
    expect(await stock.put(most, { requestId: "a" })).toBe(most);
    await expect(stock.put(1, { requestId: "b" })).rejects.toThrow(RangeError);
    expect(await stock.take(1, { requestId: "c" })).toBe(most - 1);
    expect(await stock.put(1, { requestId: "b" })).toBe(most);
    expect(await stock.read()).toBe(most);
  });
});

describe("a hundred items", () => {
  test("are sold exactly once to two hundred buyers that lose replies and retry", async () => {
    const links = await Promise.all(Array.from({ length: 4 }, behindProxy));
    await counter(holdfast, name).put(100, { requestId: "delivery" });
    // Fifty buyers on each link, ten at a time, with a different fault each time.
    const left: (number | null)[] = [];
    await Promise.all(
      links.map(async ({ proxy, local }, at) => {
        const stock = counter(local, name);
        for (const [wave, fault] of FAULTS.entries()) {
          const struck = proxy[fault](isChange);
          await Promise.all(
            Array.from({ length: 10 }, async (_, buyer) => {
              const requestId = `order:${at}:${wave}:${buyer}`;
              // Buyers without a reply retry, and some send the request twice anyway.
              const ask = async (): Promise<number | null> => {
                for (;;) {
                  const answer = await stock.take(1, { requestId }).catch(() => undefined);
                  if (answer !== undefined) return answer;
                }
              };
              const [first, again] = await Promise.all([ask(), buyer % 3 === 0 ? ask() : undefined]);
              if (again !== undefined) expect(again).toBe(first);
              left.push(first);
            }),
          );
          await struck;
        }
      }),
    );
    // Each number is the stock left after one sale, so all numbers must differ.
    const sold = left.filter((one) => one !== null).toSorted((a, b) => a - b);
    expect(sold).toEqual(Array.from({ length: 100 }, (_, at) => at));
    expect(await counter(holdfast, name).read()).toBe(0);
    expect(left).toHaveLength(200);
    await Promise.all(links.map(({ end }) => end()));
  }, 60_000);

  test("are sold exactly once to buyers in processes that are killed and restarted", async () => {
    const url = new URL("./programs/writer.mjs", import.meta.url);
    const requests = (at: number): string[] => Array.from({ length: 60 }, (_, order) => `order:${at}:${order}`);
    await counter(holdfast, name).put(100, { requestId: "delivery" });
    const programs = [0, 1, 2, 3].map(() => startProgram(url, { port: server.port }));
    try {
      await Promise.all(
        programs.map(async (program, at) => {
          const selling = program.heard("sold");
          const buying = program.call("buy", { name, requests: requests(at) }).catch(() => undefined);
          if (at < 2) {
            // Kills the process in the middle of its sales.
            await Promise.race([selling, buying]);
            await program.kill();
          }
          await buying;
        }),
      );
      // Every process repeats all requests, because after a crash it does not know which ones had a reply.
      const again = [0, 1, 2, 3].map(() => startProgram(url, { port: server.port }));
      programs.push(...again);
      const sold = await Promise.all(
        again.map((program, at) => program.call<number>("buy", { name, requests: requests(at) })),
      );
      expect(sold.reduce((sum, count) => sum + count, 0)).toBe(100);
      expect(await counter(holdfast, name).read()).toBe(0);
    } finally {
      await Promise.all(programs.map((program) => program.kill()));
    }
  }, 120_000);
});

describe("network faults", () => {
  test.each(["cutBeforeReply", "cutBeforeRequest", "duplicate"] as const)("%s: a take counts once", async (fault) => {
    const { proxy, local, end } = await behindProxy();
    const stock = counter(local, name);
    await stock.put(10, { requestId: "p" });
    const struck = proxy[fault](isChange);
    expect(await stock.take(3, { requestId: "a" })).toBe(7);
    await struck;
    expect(await stock.read()).toBe(7);
    await end();
  });

  test("without a reply the outcome is unknown, and a retry with the same id returns it", async () => {
    const proxy = await startProxy(server.port);
    const client = new Redis({ port: proxy.port });
    client.on("error", () => {});
    const local = createHoldfast({ redis: client, commandTimeoutMs: 100 });
    const stock = counter(local, name);
    await vi.waitFor(() => stock.put(10, { requestId: "p" }), eventually);
    const held = proxy.hold(isChange);
    const unknown = stock.take(3, { requestId: "a" });
    // The take may be rejected before the proxy reports that it holds the request.
    unknown.catch(() => {});
    await held.reached;
    await expect(unknown).rejects.toMatchObject({ code: "ERR_LOCK_STORE", lockName: name, mayHaveRun: true });
    held.release();
    await vi.waitFor(async () => expect(await stock.take(3, { requestId: "a" })).toBe(7), eventually);
    expect(await counter(holdfast, name).read()).toBe(7);
    await local.close();
    client.disconnect();
    await proxy.close();
  });

  test("a take that may have run is reported as such by a client that cannot resend it", async () => {
    const proxy = await startProxy(server.port);
    const client = new Redis({ port: proxy.port, retryStrategy: () => 20, enableOfflineQueue: false });
    client.on("error", () => {});
    await vi.waitFor(() => client.ping(), eventually);
    const local = createHoldfast({ redis: client, commandTimeoutMs: 200 });
    const stock = counter(local, name);
    await vi.waitFor(() => stock.put(10, { requestId: "p" }), eventually);
    const struck = proxy.cutBeforeReply(isChange);
    const unknown = stock.take(3, { requestId: "a" }).catch((error: unknown) => error);
    proxy.refuse(true);
    await struck;
    expect(await unknown).toMatchObject({ code: "ERR_LOCK_STORE", mayHaveRun: true });
    expect(((await unknown) as Error).message).toContain("it may still have been carried out");
    expect(await counter(holdfast, name).read()).toBe(7);
    await local.close();
    client.disconnect();
    await proxy.close();
  });

  test("a server that lost its data has a count of zero", async () => {
    const own = await startRedis();
    const client = new Redis({ port: own.port });
    const local = createHoldfast({ redis: client });
    const stock = counter(local, name);
    await stock.put(10, { requestId: "p" });
    await client.flushall();
    expect(await stock.take(1, { requestId: "a" })).toBeNull();
    await local.close();
    await expect(stock.take(1, { requestId: "b" })).rejects.toMatchObject({ code: "ERR_LOCK_CLOSED" });
    await expect(stock.read()).rejects.toMatchObject({ code: "ERR_LOCK_CLOSED" });
    client.disconnect();
    await own.stop();
  });
});

describe("the keys of a counter", () => {
  test("are the count and each request for a limited time, in one slot", async () => {
    const stock = counter(holdfast, name, { keepMs: 60_000 });
    await stock.put(10, { requestId: "p" });
    await stock.take(20, { requestId: "too much" });
    const keys = (await redis.keys(`*${name}*`)).toSorted();
    const key = `hf:counter:{${name}}`;
    expect(keys).toEqual([key, `${key}:request:p`, `${key}:request:too much`]);
    expect(await redis.pttl(key)).toBe(-1);
    for (const request of keys.slice(1)) {
      const restMs = await redis.pttl(request);
      expect(restMs).toBeGreaterThan(0);
      expect(restMs).toBeLessThanOrEqual(60_000);
    }
  });

  test("never collide, regardless of the characters in ids and names", async () => {
    const stock = counter(holdfast, name);
    const other = counter(holdfast, `${name}}:request:x`);
    expect(await other.put(5, { requestId: "p" })).toBe(5);
    expect(await stock.put(3, { requestId: "x}" })).toBe(3);
    // Different request ids do not collide either.
    for (const [at, requestId] of ["%", "%7D", "%25", "}", "x%7D", "{x}"].entries()) {
      expect(await stock.put(1, { requestId }), requestId).toBe(4 + at);
    }
    expect(await stock.put(3, { requestId: "x}" })).toBe(3);
    expect(await other.read()).toBe(5);
  });

  test("forget a request after `keepMs`, so that its id counts as new", async () => {
    const stock = counter(holdfast, name, { keepMs: 60_000 });
    await stock.put(10, { requestId: "p" });
    const [request = ""] = await redis.keys(`*{${name}}*:request:*`);
    const restMs = await redis.pttl(request);
    expect(restMs).toBeGreaterThan(30_000);
    expect(restMs).toBeLessThanOrEqual(60_000);
    await redis.del(request);
    expect(await stock.put(10, { requestId: "p" })).toBe(20);
  });
});

test("a counter on a quorum of servers is refused with that reason", async () => {
  const quorum = createHoldfast({ redlock: [embedded(), embedded(), embedded()] });
  expect(() => counter(quorum, name)).toThrow(UnsupportedError);
  expect(() => counter(quorum, name)).toThrow(/cannot be on several independent servers/);
  await quorum.close();
});

test.each([
  [() => counter(holdfast, ""), "name must be 1 to 512 bytes"],
  [() => counter(holdfast, name, { min: 0.5 }), "min must be a whole number"],
  [() => counter(holdfast, name, { keepMs: 999 }), "keepMs must be a whole number from 1000"],
  [() => counter(holdfast, name, { max: 5 } as never), 'there is no option "max"'],
  [() => counter({} as never, name), "holdfast must be the result of createHoldfast"],
  [() => counter(holdfast, name).take(0, { requestId: "a" }), "amount must be a whole number from 1"],
  [() => counter(holdfast, name).take(-1, { requestId: "a" }), "amount must be a whole number from 1"],
  [() => counter(holdfast, name).put(1.5, { requestId: "a" }), "amount must be a whole number from 1"],
  [() => counter(holdfast, name).take(1, undefined as never), "requestId must be a string of 1 to 256 bytes"],
  [() => counter(holdfast, name).take(1, { requestId: "" }), "requestId must be 1 to 256 bytes"],
  [() => counter(holdfast, name).take(1, { requestid: "a" } as never), 'there is no option "requestid"'],
])("the error for an invalid argument names the argument: %s", async (ask, message) => {
  await expect((async () => await ask())()).rejects.toThrow(message);
  expect(await redis.exists(`hf:counter:{${name}}`)).toBe(0);
});

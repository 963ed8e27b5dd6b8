/** `once` on a real server. */
import { randomUUID } from "node:crypto";
import { createHoldfast, type Holdfast } from "holdfast";
import { Redis } from "ioredis";
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { type RedisServer, startRedis } from "../../../tests/support/redis-server.js";
import { startProxy } from "../../../tests/support/tcp-proxy.js";
import { sleep, withLeaseInTime } from "../../holdfast/src/testing/delays.js";
import { recipesOnceLeave } from "../src/generated/scripts.js";
import {
  inspectOnce,
  jsonCodec,
  OnceBlockedError,
  OnceFailedError,
  OnceMismatchError,
  type OncePolicy,
  OnceRunningError,
  OnceUnavailableError,
  once,
  resolveOnce,
} from "../src/index.js";
import { fingerprintOf } from "../src/once/fingerprint.js";

const eventually = { timeout: 15_000, interval: 10 };
let server: RedisServer;
let redis: Redis;
let clients: Redis[];
let holdfast: Holdfast;
let other: Holdfast;
let key: string;

beforeAll(async () => {
  server = await startRedis();
  redis = new Redis({ port: server.port });
  clients = [new Redis({ port: server.port }), new Redis({ port: server.port })];
  [holdfast, other] = clients.map((client) => createHoldfast({ redis: client })) as [Holdfast, Holdfast];
});

afterAll(async () => {
  await Promise.all([holdfast?.close(), other?.close()]);
  for (const client of [redis, ...(clients ?? [])]) client?.disconnect();
  await server?.stop();
});

beforeEach(() => {
  key = randomUUID();
});

function record(): string {
  return `hf:once:{/${key}}`;
}

/** Work that runs until `end` is called. */
function held<Value>(): {
  work: () => Promise<Value>;
  began: Promise<void>;
  end: (how: Promise<Value> | Value) => void;
} {
  let begin = (): void => {};
  let end: (how: Promise<Value> | Value) => void = () => {};
  const began = new Promise<void>((resolve) => {
    begin = resolve;
  });
  const ended = new Promise<Value>((resolve) => {
    end = resolve;
  });
  ended.catch(() => {});
  return {
    work: () => {
      begin();
      return ended;
    },
    began,
    end,
  };
}

describe("many calls with one key", () => {
  test("run once, and all get the value", async () => {
    const work = vi.fn(async () => {
      await sleep(20);
      return { paid: 5n };
    });
    const all = await Promise.all(
      Array.from({ length: 50 }, (_, at) =>
        once(at % 2 === 0 ? holdfast : other, key, work, { fingerprint: { a: 1 } }),
      ),
    );
    expect(work).toHaveBeenCalledTimes(1);
    expect(all.filter(({ replayed }) => !replayed)).toHaveLength(1);
    for (const result of all) expect(result).toMatchObject({ value: { paid: 5n }, attempt: 1, token: all[0]?.token });
  });

  test("are notified of the end and do not poll constantly", async () => {
    const running = held<string>();
    const first = once(holdfast, key, running.work);
    await running.began;
    const waiting = Array.from({ length: 20 }, () => once(other, key, () => "second"));
    await vi.waitFor(async () => expect(await redis.pubsub("NUMSUB", `${record()}:ended`)).toContain(1), eventually);
    const before = await calls();
    await sleep(300);
    expect((await calls()) - before).toBeLessThan(20);
    running.end("first");
    for (const { value, replayed } of await Promise.all(waiting)) expect([value, replayed]).toEqual(["first", true]);
    await first;
  });

  async function calls(): Promise<number> {
    return Number(/cmdstat_evalsha:calls=(\d+)/.exec(await redis.info("commandstats"))?.[1] ?? 0);
  }

  test("get separate copies of the value", async () => {
    const results = [
      await once(holdfast, key, () => ({ list: [1] })),
      await once(holdfast, key, () => ({ list: [2] })),
    ];
    results[0]?.value.list.push(9);
    expect((await once(other, key, () => ({ list: [3] }))).value.list).toEqual([1]);
  });

  test("run once per scope", async () => {
    const values = [
      await once(holdfast, key, () => "none"),
      await once(holdfast, key, () => "a", { scope: "a" }),
      await once(holdfast, `b/${key}`, () => "odd", { scope: "a" }),
      await once(holdfast, key, () => "a/b", { scope: "a/b" }),
    ];
    expect(values.map(({ value, replayed }) => [value, replayed])).toEqual([
      ["none", false],
      ["a", false],
      ["odd", false],
      ["a/b", false],
    ]);
  });
});

describe("while a call runs", () => {
  test("a caller that does not wait gets an error with the holder", async () => {
    const running = held<number>();
    const first = once(holdfast, key, running.work);
    await running.began;
    const refused = await once(other, key, () => 2, { whenRunning: "reject" }).catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(OnceRunningError);
    expect(refused).toMatchObject({
      holder: { pid: process.pid, sinceAtMs: expect.any(Number) },
      message: expect.stringMatching(/^"[^"/]+" is still running in pid \d+ on \S+ \(started at \d{4}-/),
    });
    await expect(once(other, key, () => 2, { waitMs: 20 })).rejects.toThrow("after a wait of 20 ms");
    running.end(1);
    expect(await first).toMatchObject({ value: 1, replayed: false });
  });

  test("its lease is renewed, so work longer than a lease runs once", () =>
    withLeaseInTime(async (leaseMs) => {
      key = randomUUID();
      const first = once(holdfast, key, () => sleep(5 * leaseMs).then(() => "first"), { leaseMs });
      const second = once(other, key, () => "second", { leaseMs, waitMs: 30_000 });
      const all = await Promise.allSettled([first, second]);
      expect(all).toMatchObject([{ value: { value: "first" } }, { value: { value: "first", attempt: 1 } }]);
    }));

  test("its lease is renewed even if the Holdfast has `renew: false`", async () => {
    const client = new Redis({ port: server.port });
    const unrenewed = createHoldfast({ redis: client, renew: false });
    await withLeaseInTime(async (leaseMs) => {
      key = randomUUID();
      const first = once(unrenewed, key, () => sleep(3 * leaseMs).then(() => "first"), { leaseMs });
      const second = once(other, key, () => "second", { leaseMs, waitMs: 30_000 });
      const all = await Promise.allSettled([first, second]);
      expect(all).toMatchObject([{ value: { value: "first" } }, { value: { value: "first", attempt: 1 } }]);
    });
    await unrenewed.close();
    client.disconnect();
  });

  test("saved progress can use a different codec than values", async () => {
    const codec = { encode: (value: unknown) => `=${String(value)}`, decode: (text: string) => text.slice(1) };
    const options = { codec, savedCodec: jsonCodec };
    await once(
      holdfast,
      key,
      (lease) => lease.save({ page: 3 }).then(() => Promise.reject(new Error("x"))),
      options,
    ).catch(() => {});
    const next = await once(other, key, (lease) => `page ${JSON.stringify(lease.saved)}`, options);
    expect(next.value).toBe('page {"page":3}');
  });

  test("unreadable saved progress throws an error and releases the call", async () => {
    const fail = (lease: { save(data: unknown): Promise<void> }): Promise<never> =>
      lease.save(1).then(() => Promise.reject(new Error("x")));
    await once(holdfast, key, fail, { savedCodec: { encode: () => "?", decode: () => 1 } }).catch(() => {});
    await expect(once(holdfast, key, () => 1)).rejects.toThrow(SyntaxError);
    await vi.waitFor(async () => expect((await inspectOnce(other, key))?.state).toBe("released"), eventually);
  });

  test("a call with a different fingerprint is refused immediately, even behind local waiters", async () => {
    const running = held<number>();
    const first = once(holdfast, key, running.work, { fingerprint: 1 });
    await running.began;
    const waiting = once(other, key, () => 2, { fingerprint: 1 });
    await expect(once(other, key, () => 3, { fingerprint: 2, waitMs: 60_000 })).rejects.toThrow(OnceMismatchError);
    running.end(1);
    await Promise.all([first, waiting]);
  });

  test("a waiter can give up without affecting other waiters", async () => {
    const running = held<number>();
    const first = once(holdfast, key, running.work);
    await running.began;
    const controller = new AbortController();
    const leaving = once(other, key, () => 2, { signal: controller.signal });
    const staying = once(other, key, () => 3);
    const why = new Error("changed my mind");
    controller.abort(why);
    await expect(leaving).rejects.toBe(why);
    running.end(1);
    expect(await staying).toMatchObject({ value: 1 });
    await first;
  });

  test("a second caller in the same process gets its value", async () => {
    const running = held<number>();
    const first = once(holdfast, key, running.work);
    await running.began;
    const second = once(holdfast, key, () => 2);
    running.end(1);
    expect((await Promise.all([first, second])).map(({ value }) => value)).toEqual([1, 1]);
  });
});

describe("a call with another fingerprint under the same key", () => {
  const options = (fingerprint: unknown): object => ({ fingerprint, whenRunning: "reject" });

  test.each(["done", "failed", "bare", "blocked"] as const)("is refused if the first call is %s", async (state) => {
    const after = state === "blocked" ? (): OncePolicy => "block" : (): OncePolicy => "keep";
    const valueBytesMax = state === "bare" ? 0 : 1_000;
    const work = (): string => {
      if (state === "failed") throw new Error("no");
      return "yes";
    };
    await once(holdfast, key, work, { ...options("one"), after, valueBytesMax }).catch(() => {});
    expect(await inspectOnce(other, key)).toMatchObject({ state });
    const refused = once(other, key, () => "other", options("two"));
    await expect(refused).rejects.toThrow(OnceMismatchError);
    await expect(refused).rejects.toMatchObject({
      state,
      message: expect.not.stringMatching(/ is (?:bare|released);/),
    });
  });

  test("is refused immediately while the first call runs", async () => {
    const running = held<number>();
    const first = once(holdfast, key, running.work, options("one"));
    await running.began;
    await expect(once(other, key, () => 2, { fingerprint: "two", waitMs: Infinity })).rejects.toThrow(
      OnceMismatchError,
    );
    running.end(1);
    await first;
  });

  test("is refused if the first caller died, because its effect may have begun", async () => {
    await redis.hset(record(), {
      print: "x",
      state: "running",
      owner: "dead/1",
      until: 1,
      token: 7,
      attempt: 1,
      first: 1,
      since: 1,
    });
    await redis.pexpire(record(), 60_000);
    await expect(once(other, key, () => 2, options("two"))).rejects.toThrow(OnceMismatchError);
  });

  test("runs if the first call was released without saved progress, but not otherwise", async () => {
    const fail = (): never => {
      throw new Error("wrong input");
    };
    await expect(once(holdfast, key, fail, options("one"))).rejects.toThrow("wrong input");
    expect(await once(other, key, () => 2, options("two"))).toMatchObject({ value: 2, attempt: 1 });
    key = randomUUID();
    await once(holdfast, key, (lease) => lease.save("half").then(fail), options("one")).catch(() => {});
    await expect(once(other, key, () => 2, options("two"))).rejects.toThrow(OnceMismatchError);
  });

  test("is refused after a dead caller, even if a successor released the call or left it", async () => {
    const dead = { state: "running", owner: "dead/1", until: 1, token: 7, attempt: 1, first: 1, since: 1 };
    const fail = (): never => {
      throw new Error("no answer");
    };
    const leave = async (): Promise<unknown> => {
      const owner = String(await redis.hget(record(), "owner"));
      const args: { readonly [name: string]: string } = { owner, channel: `${record()}:ended` };
      const words = recipesOnceLeave.args.map((name) => args[name] ?? "");
      return await redis.eval(recipesOnceLeave.source, 1, record(), ...words);
    };
    for (const how of ["given back", "left"]) {
      key = randomUUID();
      await redis.hset(record(), { ...dead, print: fingerprintOf("one") });
      await redis.pexpire(record(), 60_000);
      const running = held<number>();
      const second = once(holdfast, key, how === "left" ? running.work : fail, options("one"));
      if (how === "left") {
        await running.began;
        // Simulates a caller that gave up before it received the grant.
        expect(await leave()).toEqual([1]);
        running.end(1);
      }
      await second.catch(() => {});
      expect((await inspectOnce(other, key))?.state, how).toBe("released");
      await expect(
        once(other, key, () => 2, options("two")),
        how,
      ).rejects.toThrow(OnceMismatchError);
      expect(await once(other, key, () => 3, options("one")), how).toMatchObject({ value: 3, replayed: false });
    }
  });

  test("is refused even after a release with `strictFingerprint`", async () => {
    const strict = (fingerprint: string): object => ({ ...options(fingerprint), strictFingerprint: true });
    const fail = (): never => {
      throw new Error("wrong input");
    };
    await expect(once(holdfast, key, fail, strict("one"))).rejects.toThrow("wrong input");
    const refused = once(other, key, () => 2, strict("two"));
    await expect(refused).rejects.toThrow(OnceMismatchError);
    await expect(refused).rejects.toMatchObject({ state: "released" });
    expect(await once(other, key, () => 1, strict("one"))).toMatchObject({ value: 1, attempt: 2 });
  });
});

describe("the outcome of a call", () => {
  test("an error is rethrown unchanged, and the next caller runs the call", async () => {
    const error = new Error("not now");
    await expect(once(holdfast, key, () => Promise.reject(error))).rejects.toBe(error);
    expect(await once(other, key, () => "now")).toMatchObject({ value: "now", replayed: false, attempt: 2 });
  });

  test("an error can be stored with its properties", async () => {
    const error = Object.assign(new RangeError("card refused"), { code: "E_CARD", at: new Date(5) });
    const after = (): OncePolicy => "keep";
    await expect(once(holdfast, key, () => Promise.reject(error), { after })).rejects.toBe(error);
    const again = once(other, key, () => "never");
    await expect(again).rejects.toThrow(OnceFailedError);
    await expect(again).rejects.toMatchObject({
      failure: { name: "RangeError", message: "card refused", data: { code: "E_CARD", at: new Date(5) } },
    });
  });

  test.each([
    ["throws for", { encode: (): never => expect.unreachable("no words"), decode: () => undefined }],
    ["encodes all values alike, also", { encode: () => "?", decode: () => 1 }],
  ])("an error is stored even by a codec that %s errors", async (_, codec) => {
    const failed = Object.assign(new Error("declined"), { code: 5 });
    const attempt = once(holdfast, key, () => Promise.reject(failed), { codec, after: () => "keep" });
    await expect(attempt).rejects.toBe(failed);
    expect(await inspectOnce(other, key)).toMatchObject({ state: "failed" });
    const again = once(other, key, () => 1, { codec });
    await expect(again).rejects.toThrow(OnceFailedError);
    await expect(again).rejects.toMatchObject({ failure: { name: "Error", message: "declined", data: { code: 5 } } });
    await vi.waitFor(() => expect(holdfast.held()).toEqual([]), eventually);
  });

  test("a call can be released after it returned, and then runs again", async () => {
    const after = (): OncePolicy => "release";
    expect(await once(holdfast, key, () => 1, { after })).toMatchObject({ value: 1, replayed: false });
    expect(await once(holdfast, key, () => 2)).toMatchObject({ value: 2, replayed: false });
  });

  test("a blocked call does not run until `resolveOnce` sets its outcome", async () => {
    const timeout = new Error("no answer from the bank");
    const after = (): OncePolicy => "block";
    await expect(once(holdfast, key, () => Promise.reject(timeout), { after })).rejects.toBe(timeout);
    const blocked = once(other, key, () => "again");
    await expect(blocked).rejects.toThrow(OnceBlockedError);
    await expect(blocked).rejects.toMatchObject({ attempt: 1, reason: "Error: no answer from the bank" });
    expect(await resolveOnce(other, key, { value: "paid" })).toBe(true);
    expect(await resolveOnce(other, key, { value: "unpaid" })).toBe(false);
    expect(await once(other, key, () => "again")).toMatchObject({ value: "paid", replayed: true });

    key = randomUUID();
    await once(holdfast, key, () => 1, { after });
    expect(await resolveOnce(other, key, "release")).toBe(true);
    expect(await once(other, key, () => 2)).toMatchObject({ value: 2, attempt: 2 });
  });

  test("an error in `after` blocks the call and is rethrown", async () => {
    const error = new Error("a bug in the policy");
    const after = (): never => {
      throw error;
    };
    await expect(once(holdfast, key, () => 1, { after })).rejects.toBe(error);
    await expect(once(holdfast, key, () => 2)).rejects.toThrow(OnceBlockedError);
  });

  test("an async `after` is refused, and its rejection is handled", async () => {
    const after = (() => Promise.reject(new Error("unheard"))) as unknown as () => OncePolicy;
    await expect(once(holdfast, key, () => 1, { after })).rejects.toThrow('after must return "keep"');
    const blocked = once(holdfast, key, () => 2);
    await expect(blocked).rejects.toThrow(OnceBlockedError);
    await expect(blocked).rejects.toThrow("the work returned, but `after` did not keep its result");
  });

  test("inspectOnce and resolveOnce refuse unknown and invalid options", async () => {
    const after = (): OncePolicy => "block";
    await once(holdfast, key, () => 1, { after });
    const misspelt = { scoop: "tenant" } as object;
    await expect(inspectOnce(holdfast, key, misspelt)).rejects.toThrow('there is no option "scoop"');
    await expect(resolveOnce(holdfast, key, "release", misspelt)).rejects.toThrow('there is no option "scoop"');
    await expect(resolveOnce(holdfast, key, { value: 1 }, { codec: {} as never })).rejects.toThrow("codec");
    expect(await inspectOnce(holdfast, key)).toMatchObject({ state: "blocked" });
  });

  test.each([
    ["too large", "x".repeat(101)],
    ["not serializable", () => {}],
  ])("a value that is %s is not stored, and the call never runs again", async (_, value) => {
    expect(await once<unknown>(holdfast, key, () => value, { valueBytesMax: 100 })).toMatchObject({ value });
    await expect(once<unknown>(other, key, () => 2)).rejects.toThrow(OnceUnavailableError);
  });

  test("a record expires after `keepMs`, and later tokens are still higher", async () => {
    const first = await once(holdfast, key, () => 1, { leaseMs: 1_000, keepMs: 1_000 });
    await vi.waitFor(async () => expect(await redis.exists(record())).toBe(0), eventually);
    const second = await once(holdfast, key, () => 2, { leaseMs: 1_000, keepMs: 1_000 });
    expect(second.replayed).toBe(false);
    expect(second.token).toBeGreaterThan(first.token);
  });
});

test("a run that exceeds `maxHoldMs` and is succeeded gets an error with that reason", async () => {
  const running = held<number>();
  const first = once(holdfast, key, running.work, { leaseMs: 1_500, maxHoldMs: 100 });
  await running.began;
  expect(await once(other, key, () => 2, { waitMs: 60_000 })).toMatchObject({ value: 2, attempt: 2 });
  running.end(1);
  await expect(first).rejects.toMatchObject({ name: "OnceLostError", value: 1, reason: "max-hold" });
});

test("a run whose record was deleted gets an OnceLostError", async () => {
  const running = held<number>();
  const first = once(holdfast, key, running.work);
  await running.began;
  await redis.del(record());
  running.end(1);
  await expect(first).rejects.toMatchObject({ name: "OnceLostError", value: 1, reason: "server-lost" });
});

describe("lost replies", () => {
  test.each(["begin", "settle", "save"])("%s takes effect once", async (script) => {
    const proxy = await startProxy(server.port);
    const client = new Redis({ port: proxy.port, retryStrategy: () => 20 });
    client.on("error", () => {});
    const local = createHoldfast({ redis: client });
    await once(local, `${key}:warm`, (lease) => lease.save(1));
    const sha = (await import("../src/generated/scripts.js"))[
      `recipesOnce${script[0]?.toUpperCase()}${script.slice(1)}` as "recipesOnceBegin"
    ].sha1;
    const struck = proxy.cutBeforeReply(new RegExp(`^evalsha ${sha}`, "i"));
    const work = vi.fn(async (lease: { save: (data: unknown) => Promise<void> }) => {
      await lease.save("half");
      return "done";
    });
    expect(await once(local, key, work)).toMatchObject({ value: "done", attempt: 1, replayed: false });
    await struck;
    expect(work).toHaveBeenCalledTimes(1);
    expect(await once(other, key, () => "again")).toMatchObject({ value: "done", attempt: 1, replayed: true });
    await local.close();
    client.disconnect();
    await proxy.close();
  });
});

describe("nothing is left", () => {
  test("every key expires", async () => {
    await once(holdfast, key, () => 1);
    const keys = (await redis.keys("hf:*")).filter((each) => each.includes(":once:"));
    expect(keys.length).toBeGreaterThan(0);
    for (const each of keys) expect(await redis.pttl(each), each).toBeGreaterThan(0);
  });

  test("a caller that gives up before any reply leaves no attempt behind", async () => {
    const proxy = await startProxy(server.port);
    const client = new Redis({ port: proxy.port });
    client.on("error", () => {});
    const local = createHoldfast({ redis: client });
    await once(local, `${key}:warm`, () => 1);
    const begin = proxy.hold(/evalsha .*once/i);
    const controller = new AbortController();
    const work = vi.fn();
    const leaving = once(local, key, work, { signal: controller.signal });
    await begin.reached;
    controller.abort(new Error("no longer"));
    await expect(leaving).rejects.toThrow("no longer");
    begin.release();
    await vi.waitFor(async () => expect(await redis.exists(record())).toBe(0), eventually);
    expect(work).not.toHaveBeenCalled();
    expect(await once(other, key, () => 1)).toMatchObject({ attempt: 1 });
    await local.close();
    client.disconnect();
    await proxy.close();
  });
});

test.each([
  [{ leaseMs: 99 }, "leaseMs"],
  [{ keepMs: 14_999 }, "keepMs"],
  [{ waitMs: -1 }, "waitMs"],
  [{ maxHoldMs: 0 }, "maxHoldMs"],
  [{ scope: "" }, "scope"],
  [{ whenRunning: "no" }, "whenRunning"],
  [{ strictFingerprint: 1 }, "strictFingerprint"],
  [{ after: 5 }, "after"],
  [{ valueBytesMax: -1 }, "valueBytesMax"],
  [{ codec: {} }, "codec must be"],
  [{ savedCodec: {} }, "savedCodec must be"],
  [{ keep: 5 }, "keep"],
  [{ fingerprint: () => {} }, "fingerprint must contain only data that can be compared: a function"],
  [{ fingerprint: { a: Symbol("b") } }, "fingerprint must contain only data that can be compared: a symbol"],
])("the error for an invalid option names the option: %o", async (options, name) => {
  const work = vi.fn();
  await expect(once(holdfast, key, work, options as object)).rejects.toThrow(name);
  await expect(once(holdfast, "", work)).rejects.toThrow("key must be 1 to 255 bytes");
  await expect(once(holdfast, key, undefined as never)).rejects.toThrow("work must be a function");
  expect(work).not.toHaveBeenCalled();
  expect(await redis.exists(record())).toBe(0);
});

/** Improvements of the drop-in over the original: waking, deadlines, split votes, tokens. */
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import Redlock, { ExecutionError, type Lock, ResourceLockedError } from "@holdfast/redlock-compat";
import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type RedisServer, startRedis } from "../../../tests/support/redis-server.js";
import { ORIGINAL } from "./libraries.js";
import { names, PLACES, type Place } from "./places.js";

/** Longer than any test. */
const LONG_MS = 600_000;
/** Polls so rarely that only a message can wake a waiter. */
const NEVER_POLLS = { retryDelay: LONG_MS, retryJitter: 0 };

describe.each(PLACES)("on %s", (_, start) => {
  let place: Place;
  beforeAll(async () => {
    place = await start();
  });
  afterAll(() => place?.stop());

  test("a release wakes a waiter of another instance", async () => {
    const resources = names(2);
    const holder = await new Redlock(place.clients).acquire(resources, LONG_MS);
    const duplicates = place.clients.map((client) => (client as Redis).duplicate());
    const redlock = new Redlock(duplicates, NEVER_POLLS);
    const refused = new Promise((resolve) => redlock.once("error", resolve));
    const waiting = redlock.acquire(resources.slice(1), LONG_MS);
    await refused;
    await holder.release();
    await (await waiting).release();
    for (const client of duplicates) client.disconnect();
  });

  test("waiters of one process get the lock in turn, each woken by a release", async () => {
    const resources = names(1);
    const redlock = new Redlock(place.clients, NEVER_POLLS);
    let inside = 0;
    await Promise.all(
      Array.from({ length: 10 }, async () => {
        const lock = await redlock.acquire(resources, LONG_MS);
        inside += 1;
        expect(inside).toBe(1);
        inside -= 1;
        await lock.release();
      }),
    );
  });

  test("a waiter finds what an original instance releases by polling", async () => {
    const resources = names(1);
    const holder = await new ORIGINAL.default(place.clients as never).acquire(resources, LONG_MS);
    const waiting = new Redlock(place.clients, { retryCount: -1, retryDelay: 10 }).acquire(resources, LONG_MS);
    await holder.release();
    await (await waiting).release();
  });

  test("a resource that is named twice is locked and released once", async () => {
    const [name = ""] = names(1);
    const lock = await new Redlock(place.clients).acquire([name, name], LONG_MS);
    await lock.release();
    await expect.poll(() => place.clients[0]?.exists(name)).toBe(0);
  });
});

describe("on one server", () => {
  let server: RedisServer;
  let redis: Redis;
  beforeAll(async () => {
    server = await startRedis();
    redis = new Redis({ port: server.port });
  });
  afterAll(async () => {
    redis?.disconnect();
    await server?.stop();
  });

  test("tokens rise with every lock on a resource, alone or with others", async () => {
    const [one = "", other = ""] = names(2);
    const redlock = new Redlock([redis]);
    let last = 0;
    for (const resources of [[one], [one, other], [other], [one, other], [one]]) {
      const lock = await redlock.acquire(resources, LONG_MS);
      expect(lock.token).toBeGreaterThan(last);
      last = lock.token ?? 0;
      const next = await lock.extend(LONG_MS);
      expect(next.token).toBe(last);
      await next.release();
    }
  });

  test("without access to the keys of tokens, a lock has none", async () => {
    const [name = ""] = names(1);
    await redis.call("ACL", "SETUSER", "narrow", "on", ">secret", "+@all", "~{*", "&*");
    const narrow = new Redis({ port: server.port, username: "narrow", password: "secret" });
    const redlock = new Redlock([narrow], { retryCount: 0 });
    for (let i = 0; i < 2; i += 1) {
      const lock = await redlock.acquire([name], LONG_MS);
      expect(lock.token).toBeUndefined();
      await (await lock.extend(LONG_MS)).release();
    }
    narrow.disconnect();
  });

  test("a prefix of the client is part of the key, the token's key and the channel", async () => {
    const [name = ""] = names(1);
    const prefixed = new Redis({ port: server.port, keyPrefix: "mine:" });
    const redlock = new Redlock([prefixed], NEVER_POLLS);
    const lock = await redlock.acquire([name], LONG_MS);
    expect(await redis.get(`mine:${name}`)).toBe(lock.value);
    expect(await redis.exists(name)).toBe(0);
    const refused = new Promise((resolve) => redlock.once("error", resolve));
    const waiting = redlock.acquire([name], LONG_MS);
    await refused;
    await lock.release();
    const next = await waiting;
    expect(next.token).toBeGreaterThan(lock.token ?? 0);
    await next.release();
    prefixed.disconnect();
  });

  test("scripts of the user get the keys and arguments of the original", async () => {
    const [name = ""] = names(1);
    const acquireScript = `assert(#KEYS == 1) redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2]) return 1`;
    const redlock = new Redlock([redis], {}, { acquireScript, releaseScript: (text) => `${text}\n-- changed` });
    const lock = await redlock.acquire([name], LONG_MS);
    expect(await redis.get(name)).toBe(lock.value);
    expect(lock.token).toBeUndefined();
    await lock.release();
    expect(await redis.exists(name)).toBe(0);
  });

  test("the release of a lock that is gone fails after one attempt", async () => {
    const [name = ""] = names(1);
    const lock = await new Redlock([redis], NEVER_POLLS).acquire([name], LONG_MS);
    await redis.del(name);
    const error = await lock.release().catch((reason: unknown) => reason);
    expect((error as ExecutionError).attempts).toHaveLength(1);
  });

  test("the error of a routine is not replaced by that of the release", async () => {
    const [name = ""] = names(1);
    const inside = new Redlock([redis], NEVER_POLLS).using([name], LONG_MS, async () => {
      await redis.del(name);
      throw new Error("the work failed");
    });
    await expect(inside).rejects.toThrow("the work failed");
  });

  test("a process that has waited, and quits, ends", async () => {
    const program = fileURLToPath(new URL("programs/waits-and-quits.mjs", import.meta.url));
    const { stdout } = await promisify(execFile)(process.execPath, [program, String(server.port)]);
    expect(stdout.trim()).toBe("locked twice");
  });

  test("CommonJS gets the class as `default`", async () => {
    const code = `const { default: Redlock, Lock } = require("@holdfast/redlock-compat"); console.log(typeof Redlock, typeof Lock)`;
    const cwd = fileURLToPath(new URL("..", import.meta.url));
    const { stdout } = await promisify(execFile)(process.execPath, ["--no-warnings", "--eval", code], { cwd });
    expect(stdout.trim()).toBe("function function");
  });
});

/** A reply of a mock server. */
type Reply = () => unknown;
const QUICK = { retryDelay: 1, retryJitter: 0 };
const FREE: Reply = () => 1;
const TAKEN: Reply = () => 0;
const HANGS: Reply = () => new Promise(() => {});

/** A mock client like those in users' unit tests; its n-th script call gets the n-th reply. */
function mock(...replies: readonly Reply[]): { client: never; calls: string[]; values: (string | undefined)[] } {
  const calls: string[] = [];
  const values: (string | undefined)[] = [];
  const evalsha = async (hash: string, _: number, [, value]: readonly string[]): Promise<unknown> => {
    values.push(value);
    const reply = replies[Math.min(calls.length, replies.length - 1)] ?? FREE;
    calls.push(hash);
    return reply();
  };
  return { client: { evalsha, eval: evalsha } as never, calls, values };
}

describe("servers that reply in every way", () => {
  const clientsOf = (...all: readonly Reply[]): never[] => all.map((reply) => mock(reply).client);

  test("a split vote of two or four servers ends", async () => {
    for (const replies of [
      [FREE, TAKEN],
      [FREE, FREE, TAKEN, TAKEN],
    ]) {
      const acquiring = new Redlock(clientsOf(...replies), { ...QUICK, retryCount: 1 }).acquire(["a"], LONG_MS);
      await expect(acquiring).rejects.toBeInstanceOf(ExecutionError);
    }
  });

  test("a minority that never replies changes nothing", async () => {
    const lock = await new Redlock(clientsOf(FREE, HANGS, FREE)).acquire(["a"], LONG_MS);
    expect(await lock.release()).toMatchObject({ attempts: [expect.any(Promise)] });
  });

  test("a majority that never replies fails the attempt when the lock would be over", async () => {
    const redlock = new Redlock(clientsOf(FREE, HANGS, HANGS), { ...QUICK, retryCount: 0 });
    const error = await redlock.acquire(["a"], 30).catch((reason: unknown) => reason);
    const stats = await (error as ExecutionError).attempts[0];
    expect([...(stats?.votesAgainst.values() ?? [])].map(({ message }) => message)).toEqual(
      Array(2).fill("The server did not reply within 30 ms."),
    );
  });

  test("a lock whose grant arrives when it is over is not returned", async () => {
    const late = async (): Promise<number> => {
      const end = performance.now() + 40;
      // Blocks the thread, so that no timer can end the attempt before the reply.
      while (performance.now() < end);
      return 1;
    };
    const acquiring = new Redlock(clientsOf(late), { ...QUICK, retryCount: 0 }).acquire(["a"], 30);
    await expect(acquiring).rejects.toBeInstanceOf(ExecutionError);
  });

  test("a rejection with anything but an error is a vote against", async () => {
    const redlock = new Redlock(
      clientsOf(() => Promise.reject("no error")),
      { ...QUICK, retryCount: 0 },
    );
    const errors: unknown[] = [];
    redlock.on("error", (error) => errors.push(error));
    await expect(redlock.acquire(["a"], LONG_MS)).rejects.toBeInstanceOf(ExecutionError);
    expect(errors).toEqual([new Error("Unexpected value thrown: no error")]);
  });

  test("an acquire without a limit keeps a bounded number of attempts", async () => {
    let left = 1_500;
    const free = (): number => (left-- > 0 ? 0 : 1);
    const lock = await new Redlock(clientsOf(free), { retryDelay: 0, retryJitter: 0, retryCount: -1 }).acquire(
      ["a"],
      LONG_MS,
    );
    expect(lock.attempts.length).toBeLessThanOrEqual(1_000);
  });

  test("the minority of a failed attempt is released before the next attempt, which has another value", async () => {
    const granting = mock(FREE);
    const redlock = new Redlock([granting.client, ...clientsOf(TAKEN, TAKEN)], { ...QUICK, retryCount: 1 });
    await redlock.acquire(["a"], LONG_MS).catch(() => {});
    const { acquireScript, releaseScript } = redlock.scripts;
    const [first, undo, second] = granting.calls;
    expect([first, undo, second]).toEqual([acquireScript.hash, releaseScript.hash, acquireScript.hash]);
    // A release that arrives late, because the server did not know its script, must not undo the second attempt.
    expect(granting.values[1]).toBe(granting.values[0]);
    expect(granting.values[2]).not.toBe(granting.values[0]);
  });

  test.each<[string, Reply]>([
    ["hang", HANGS],
    ["fail at once", () => Promise.reject(new Error("connection lost"))],
  ])("the signal of using aborts by the end of the lock if all extensions %s", async (_, extension) => {
    const { client, calls } = mock(FREE, extension);
    const redlock = new Redlock([client], { ...QUICK, retryCount: 0, automaticExtensionThreshold: 400 });
    let lockEndsAtMs = 0;
    const inside = redlock.using(["a"], 500, async (signal) => {
      lockEndsAtMs = Date.now() + 500;
      if (!signal.aborted) await new Promise((resolve) => signal.addEventListener("abort", resolve));
      expect(signal.error).toBeInstanceOf(ExecutionError);
      throw signal.error;
    });
    await expect(inside).rejects.toBeInstanceOf(ExecutionError);
    expect(lockEndsAtMs).toBeGreaterThan(0);
    // Extensions are at least 10 ms apart: at most 40, plus the calls of acquire and release.
    expect(calls.length).toBeLessThan(60);
  });

  test("the value of a routine is returned if only the release cannot be sent", async () => {
    const { client } = mock(FREE, () => Promise.reject(new Error("connection lost")));
    const redlock = new Redlock([client], { ...QUICK, retryCount: 0 });
    expect(await redlock.using(["a"], LONG_MS, async () => 7)).toBe(7);
  });

  test("a routine whose lock was lost is not reported as successful", async () => {
    const { client } = mock(FREE, TAKEN);
    const inside = new Redlock([client], QUICK).using(["a"], LONG_MS, async () => 7);
    await expect(inside).rejects.toBeInstanceOf(ExecutionError);
  });

  test("a lock that another process has acquired can be released by its parts", async () => {
    const redlock = new Redlock(clientsOf(FREE));
    const lock: Lock = await redlock.acquire(["a"], LONG_MS);
    expect(lock.token).toBeUndefined();
    expect(new ResourceLockedError("x")).toMatchObject({ name: "ResourceLockedError", message: "x" });
    await redlock.release(lock);
  });
});

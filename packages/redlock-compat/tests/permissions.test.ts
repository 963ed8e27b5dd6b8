/** Redis users with few permissions: permissions that are enough for redlock 5 are enough for locks of the drop-in. */
import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type RedisServer, startRedis } from "../../../tests/support/redis-server.js";
import { LIBRARIES } from "./libraries.js";
import { names } from "./places.js";

/** Longer than any test. */
const LONG_MS = 600_000;
/** Permissions for the commands of the original's scripts, on its keys. */
const ORIGINAL_RULES = ["~{*", "+eval", "+evalsha", "+exists", "+set", "+get", "+del"];

describe.each(LIBRARIES)("%s", (_, library) => {
  let server: RedisServer;
  let admin: Redis;
  beforeAll(async () => {
    server = await startRedis();
    admin = new Redis({ port: server.port });
  });
  afterAll(async () => {
    admin?.disconnect();
    await server?.stop();
  });

  test.each<[string, readonly string[], hasToken: boolean]>([
    ["nothing else", [], false],
    ["the time", ["+time"], false],
    ["all keys", ["~*"], false],
    ["the keys of tokens and the time", ["~hf:*", "+time"], true],
    ["everything but reading an expiry", ["+@all", "~*", "&*", "-pttl", "-pexpire"], true],
  ])("a user who may run the original's scripts, and %s, gets locks", async (__, rules, hasToken) => {
    const [name = ""] = names(1);
    await admin.call(
      "ACL",
      "SETUSER",
      "narrow",
      "reset",
      "on",
      ">secret",
      "resetchannels",
      ...ORIGINAL_RULES,
      ...rules,
    );
    const client = new Redis({ port: server.port, username: "narrow", password: "secret", enableReadyCheck: false });
    const redlock = new library.default([client] as never, { retryCount: 0 });
    for (let round = 0; round < 2; round += 1) {
      const lock = await redlock.acquire([name], LONG_MS);
      expect(await admin.get(name)).toBe(lock.value);
      const isDropIn = library !== LIBRARIES[0]?.[1];
      expect((lock as { token?: number }).token !== undefined).toBe(isDropIn && hasToken);
      await expect(redlock.acquire([name], LONG_MS)).rejects.toBeInstanceOf(library.ExecutionError);
      const next = await lock.extend(3 * LONG_MS);
      expect(await admin.pttl(name)).toBeGreaterThan(2 * LONG_MS);
      const waiting = redlock.acquire([name], LONG_MS, { retryCount: -1, retryDelay: 10, retryJitter: 0 });
      expect(await next.release()).toMatchObject({ attempts: [expect.any(Promise)] });
      await (await waiting).release();
      expect(await admin.exists(name)).toBe(0);
    }
    client.disconnect();
  });
});

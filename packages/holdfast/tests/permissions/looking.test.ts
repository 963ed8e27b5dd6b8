/** Like single.test.ts, for a user that lists all locks and reads their history. */
import { randomUUID } from "node:crypto";
import { Redis } from "ioredis";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type RedisServer, startRedis } from "../../../../tests/support/redis-server.js";
import { appendHistory, clients, lookUp, readHistory, surveyAll } from "../../src/admin/index.js";
import { StoreError } from "../../src/core/errors.js";
import { createHoldfast } from "../../src/holdfast.js";
import { serverTimeMs, startOfPeriod } from "../../src/period-marker/index.js";
import { lockManager } from "../../src/web-locks/index.js";
import { FOR_LOOKING, ON_ONE_SERVER, permitConnecting, type Rules, refusedIn } from "./acl.js";

let server: RedisServer;
beforeAll(async () => {
  server = await startRedis();
});
afterAll(() => server.stop());

/** Runs all admin functions as a user with these rules. Returns the missing permissions. */
async function lookAs(rules: Rules): Promise<string[]> {
  const username = `user-${randomUUID()}`;
  await server.command("ACL", "SETUSER", username, ...rules);
  await permitConnecting(server, username);
  const redis = new Redis({ port: server.port, username, password: "secret", enableReadyCheck: false });
  redis.on("error", () => {});
  const holdfast = createHoldfast({ redis });
  const missing: string[] = [];
  const attempt = async (work: () => Promise<unknown>): Promise<void> => {
    try {
      await work();
    } catch (error) {
      if (!(error instanceof StoreError) || error.missingPermission === undefined) throw error;
      missing.push(error.missingPermission);
    }
  };
  const name = randomUUID();
  try {
    const lease = await holdfast.mutex(name).acquire();
    await attempt(() => surveyAll(holdfast, { includeFree: true }));
    await attempt(() => lookUp(holdfast, name));
    await attempt(() => clients(holdfast));
    await attempt(() => lockManager(holdfast).query());
    await attempt(() => appendHistory(holdfast, { what: "skipped", kind: "mutex", name, reason: "busy" }));
    await attempt(() => readHistory(holdfast, { name }));
    await attempt(() => readHistory(holdfast));
    await attempt(async () => {
      const readAtMs = await serverTimeMs(holdfast, name);
      const start = await startOfPeriod(holdfast, lease, { every: "day", readAtMs });
      if (start.outcome === "started") await start.end(0);
    });
    await lease.release();
  } finally {
    await holdfast.close();
    redis.disconnect();
  }
  return missing;
}

test("with the documented permissions, nothing is refused", async () => {
  await server.command("ACL", "LOG", "RESET");
  expect(await lookAs([...ON_ONE_SERVER, ...FOR_LOOKING])).toEqual([]);
  expect(refusedIn(await server.command("ACL", "LOG"))).toEqual([]);
});

test.each(FOR_LOOKING)("without %s, a request is refused and the missing permission is named", async (permission) => {
  const missing = await lookAs([...ON_ONE_SERVER, ...FOR_LOOKING].filter((rule) => rule !== permission));
  expect(new Set(missing)).toEqual(new Set([permission]));
});

test("locking, looking up a name, and starting a period need none of these permissions", async () => {
  const missing = await lookAs(ON_ONE_SERVER);
  expect(new Set(missing)).toEqual(new Set(FOR_LOOKING));
});

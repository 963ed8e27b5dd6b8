/** The user of docs/permissions.md has exactly the permissions that Holdfast needs. Errors name a missing permission. */
import { Redis } from "ioredis";
import { createClient } from "redis";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { type RedisServer, startRedis } from "../../../../tests/support/redis-server.js";
import { createHoldfast } from "../../src/holdfast.js";
import { echoOn } from "../../src/inbox/echo.js";
import { storeFor } from "../../src/stores/detect.js";
import { LONG_MS, until } from "../../src/testing/delays.js";
import { isNamed, ON_ONE_SERVER, others, permitConnecting, type Rules, refusals, refusedIn } from "./acl.js";
import { type Complaint, shown, tour } from "./tour.js";

const RULES = ON_ONE_SERVER;
/** The rules that grant a permission: all but the user's state and password. */
const PERMISSIONS = RULES.filter((rule) => /^[+~&]/.test(rule));

// Fifty users run at the same time on a busy machine.
vi.setConfig({ testTimeout: 150_000 });

let servers: RedisServer[];
let server: RedisServer;
const warnings: string[] = [];
const collect = (warning: Error & { detail?: string }): void =>
  void warnings.push(`${warning.message} ${warning.detail}`);

beforeAll(async () => {
  process.on("warning", collect);
  servers = await Promise.all([startRedis(), startRedis(), startRedis()]);
  [server] = servers as [RedisServer];
});
afterAll(async () => {
  process.off("warning", collect);
  await Promise.all(servers.map((one) => one.stop()));
});

let users = 0;

/** Runs the tour as a user with these rules. */
async function tourAs(rules: Rules): Promise<Complaint[]> {
  users += 1;
  const username = `user${users}`;
  await Promise.all(servers.map((one) => one.command("ACL", "SETUSER", username, ...rules)));
  await Promise.all(servers.map((one) => permitConnecting(one, username)));
  const client = ({ port }: RedisServer = server): Redis => {
    const redis = new Redis({ port, username, password: "secret", enableReadyCheck: false });
    redis.on("error", () => {});
    clients.push(redis);
    return redis;
  };
  const clients: Redis[] = [];
  const holdfasts = {
    first: createHoldfast({ redis: client() }),
    second: createHoldfast({ redis: client() }),
    // Passed as stores because Holdfast would exclude a just-started server for a while.
    quorum: createHoldfast({ redlock: servers.map((one) => storeFor(client(one))) }),
  };
  try {
    return await tour({ ...holdfasts, forget: (key) => server.command("DEL", key) });
  } finally {
    await Promise.all(Object.values(holdfasts).map((holdfast) => holdfast.close()));
    for (const redis of clients) redis.disconnect();
  }
}

test("without +script|load, no script is loaded and the error names that permission", async () => {
  // This test runs first because a loaded script stays on the server.
  const complaints = await tourAs(RULES.filter((rule) => rule !== "+script|load"));
  expect(complaints.length).toBeGreaterThan(0);
  expect(shown(others(complaints, "+script|load"))).toEqual([]);
});

test("with all documented permissions, nothing is refused", async () => {
  for (const one of servers) await one.command("ACL", "LOG", "RESET");
  expect(shown(refusals(await tourAs(RULES)))).toEqual([]);
  for (const one of servers) expect(refusedIn(await one.command("ACL", "LOG"))).toEqual([]);
  expect(warnings.filter((text) => text.includes("lacks"))).toEqual([]);
});

test.concurrent.each(PERMISSIONS.filter((rule) => rule !== "+script|load"))(
  "without %s, a request is refused and the missing permission is named",
  async (permission) => {
    const complaints = await tourAs(RULES.filter((rule) => rule !== permission));
    if (permission === "+info") {
      expect(shown(refusals(complaints))).toEqual([]);
      await until(
        () => warnings.some((text) => text.includes("took over") && text.includes("Grant INFO")),
        "a warning",
      );
      return;
    }
    expect(shown(others(complaints, permission))).toEqual([]);
    // A user that may not subscribe polls instead, and the operator gets a warning.
    if (!complaints.some(({ missing }) => isNamed(permission, missing))) {
      await until(() => warnings.some((text) => text.includes(`lacks ${permission}`)), `a warning about ${permission}`);
    }
  },
);

const libraries: Readonly<Record<string, (username: string) => Promise<{ redis: object; close: () => unknown }>>> = {
  async ioredis(username) {
    const redis = new Redis({ port: server.port, username, password: "secret", enableReadyCheck: false });
    return { redis, close: () => redis.disconnect() };
  },
  async "node-redis"(username) {
    const redis = createClient({ socket: { port: server.port, host: "127.0.0.1" }, username, password: "secret" });
    redis.on("error", () => {});
    await redis.connect();
    return { redis, close: () => redis.destroy() };
  },
};

test.each(Object.keys(libraries))("a client with all permissions can check its inbox: %s", async (library) => {
  const username = `echo-${library}`;
  await server.command("ACL", "SETUSER", username, ...RULES);
  const { redis, close } = await (libraries[library] as (typeof libraries)[string])(username);
  const store = storeFor(redis);
  try {
    const heard: string[] = [];
    const channel = "hf:in:abcdefghijklmnop";
    const echo = { channel, isCounted: true };
    expect(await echoOn(store, true).send({ ...echo, number: 1 }, LONG_MS)).toBe(false);
    await store.inbox(channel, (message) => heard.push(message), LONG_MS);
    expect(await echoOn(store, true).send({ ...echo, number: 2 }, LONG_MS)).toBe(true);
    await until(() => heard.length > 0, "the echo");
    expect(heard).toEqual(["=2"]);
  } finally {
    await store.close();
    await close();
  }
});

/** The user of docs/safety.md may do all that Holdfast needs, and nothing that it does not; what is missing is named. */
import { Redis } from "ioredis";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { type RedisServer, startRedis } from "../../../../tests/support/redis-server.js";
import { createHoldfast } from "../../src/holdfast.js";
import { echoOn } from "../../src/inbox/echo.js";
import { storeFor } from "../../src/stores/detect.js";
import { LONG_MS, until } from "../../src/testing/delays.js";
import { isNamed, ON_ONE_SERVER, others, type Rules, refusals, refusedIn } from "./acl.js";
import { type Complaint, shown, tour } from "./tour.js";

const RULES = ON_ONE_SERVER;
/** Those that permit something: all but the state of the user and its password. */
const PERMISSIONS = RULES.filter((rule) => /^[+~&]/.test(rule));

/** The first is that of all kinds but the lock on a quorum. */
// Fifty users at once on a busy machine.
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

/** The tour as a user with these rules. */
async function tourAs(rules: Rules): Promise<Complaint[]> {
  users += 1;
  const username = `user${users}`;
  await Promise.all(servers.map((one) => one.command("ACL", "SETUSER", username, ...rules)));
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
    // As stores, since a server that was started just now would be kept out for a while.
    quorum: createHoldfast({ redlock: servers.map((one) => storeFor(client(one))) }),
  };
  try {
    return await tour({ ...holdfasts, forget: (key) => server.command("DEL", key) });
  } finally {
    await Promise.all(Object.values(holdfasts).map((holdfast) => holdfast.close()));
    for (const redis of clients) redis.disconnect();
  }
}

test("no script is loaded without +script|load, and the error says so", async () => {
  // First of all: what is loaded once stays known to the server.
  const complaints = await tourAs(RULES.filter((rule) => rule !== "+script|load"));
  expect(complaints.length).toBeGreaterThan(0);
  expect(shown(others(complaints, "+script|load"))).toEqual([]);
});

test("with all of them nothing is refused", async () => {
  for (const one of servers) await one.command("ACL", "LOG", "RESET");
  expect(shown(refusals(await tourAs(RULES)))).toEqual([]);
  for (const one of servers) expect(refusedIn(await one.command("ACL", "LOG"))).toEqual([]);
  expect(warnings.filter((text) => text.includes("lacks"))).toEqual([]);
});

test.concurrent.each(PERMISSIONS.filter((rule) => rule !== "+script|load"))(
  "without %s something is refused, and it is named",
  async (permission) => {
    const complaints = await tourAs(RULES.filter((rule) => rule !== permission));
    if (permission === "+info") {
      expect(shown(refusals(complaints))).toEqual([]);
      await until(
        () => warnings.some((text) => text.includes("took over") && text.includes("Permit INFO")),
        "a warning",
      );
      return;
    }
    expect(shown(others(complaints, permission))).toEqual([]);
    // Whoever may not listen goes on, and asks now and then; the operator is told.
    if (!complaints.some(({ missing }) => isNamed(permission, missing))) {
      await until(() => warnings.some((text) => text.includes(`lacks ${permission}`)), `a warning about ${permission}`);
    }
  },
);

test("a client may check its inbox with all of them, and nothing is refused", async () => {
  await server.command("ACL", "SETUSER", "echo", ...RULES);
  const redis = new Redis({ port: server.port, username: "echo", password: "secret", enableReadyCheck: false });
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
    redis.disconnect();
  }
});

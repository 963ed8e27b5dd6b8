/** The user of docs/safety.md may do all that Holdfast needs, and nothing that it does not; what is missing is named. */
import { Redis } from "ioredis";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type RedisServer, startRedis } from "../../../../tests/support/redis-server.js";
import { StoreError } from "../../src/core/errors.js";
import { createHoldfast } from "../../src/holdfast.js";
import { storeFor } from "../../src/stores/detect.js";
import { until } from "../../src/testing/delays.js";
import { type Rules, rulesOf } from "./acl.js";
import { type Complaint, tour } from "./tour.js";

const RULES = rulesOf("locks");
/** Those that permit something: all but the state of the user and its password. */
const PERMISSIONS = RULES.filter((rule) => /^[+~&]/.test(rule));

/** The first is that of all kinds but the lock on a quorum. */
let servers: RedisServer[];
let server: RedisServer;
const warnings: string[] = [];
const collect = (warning: Error & { detail?: string }): void => void warnings.push(`${warning.message} ${warning.detail}`);

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

/** In one line each, so that a failure shows them. */
function shown(complaints: readonly Complaint[]): string[] {
  return complaints.map(({ step, missing, error }) => `${step}: lacks ${missing}: ${error}`);
}

/** Whether what was named as missing is that very permission, or what its pattern stands for. */
function isNamed(permission: string, missing: string | undefined): boolean {
  const words = (missing ?? "").split(" ");
  if (permission.startsWith("+")) return words.includes(permission);
  return words.some((word) => word.startsWith(permission.replace("*", "")));
}

test("no script is taught without +script|load, and the error says so", async () => {
  // First of all: what is taught once stays known to the server.
  const complaints = await tourAs(RULES.filter((rule) => rule !== "+script|load"));
  expect(complaints.length).toBeGreaterThan(0);
  expect(shown(complaints.filter(({ missing }) => missing !== "+script|load"))).toEqual([]);
});

test("with all of them nothing is refused", async () => {
  for (const one of servers) await one.command("ACL", "LOG", "RESET");
  expect(shown(await tourAs(RULES))).toEqual([]);
  for (const one of servers) expect(await one.command("ACL", "LOG")).toEqual([]);
  expect(warnings.filter((text) => text.includes("lacks"))).toEqual([]);
});

test.concurrent.each(PERMISSIONS.filter((rule) => rule !== "+script|load"))(
  "without %s something is refused, and it is named",
  async (permission) => {
    const complaints = await tourAs(RULES.filter((rule) => rule !== permission));
    if (permission === "+info") {
      expect(shown(complaints)).toEqual([]);
      await until(() => warnings.some((text) => text.includes("Permit INFO to this user")), "a warning");
      return;
    }
    const named = complaints.filter(({ missing }) => isNamed(permission, missing));
    // What else went wrong is a consequence, such as a wait in vain for somebody who was refused.
    const unnamed = complaints.filter((one) => one.error instanceof StoreError && !named.includes(one));
    expect(shown(unnamed)).toEqual([]);
    // Whoever may not listen goes on, and asks now and then; the operator is told.
    if (named.length === 0) {
      await until(() => warnings.some((text) => text.includes(`lacks ${permission}`)), `a warning about ${permission}`);
    }
  },
);

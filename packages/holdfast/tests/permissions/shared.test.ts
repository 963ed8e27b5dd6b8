/** Like single.test.ts, for locks shared with other systems: the user needs more permissions, and each is necessary. */
import { Redis } from "ioredis";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { type RedisServer, startRedis } from "../../../../tests/support/redis-server.js";
import { createHoldfast } from "../../src/holdfast.js";
import { until } from "../../src/testing/delays.js";
import {
  isNamed,
  ON_ONE_SERVER,
  others,
  permitConnecting,
  type Rules,
  refusals,
  refusedIn,
  SHARED_LOCKS,
} from "./acl.js";
import { sharedTour } from "./shared-tour.js";
import { type Complaint, shown } from "./tour.js";

const RULES = [...ON_ONE_SERVER, ...SHARED_LOCKS];

vi.setConfig({ testTimeout: 150_000 });

let server: RedisServer;
const warnings: string[] = [];
const collect = (warning: Error & { detail?: string }): void =>
  void warnings.push(`${warning.message} ${warning.detail}`);

beforeAll(async () => {
  process.on("warning", collect);
  server = await startRedis();
});
afterAll(async () => {
  process.off("warning", collect);
  await server?.stop();
});

let users = 0;

/** Runs the tour as a user with these rules. */
async function tourAs(rules: Rules): Promise<Complaint[]> {
  users += 1;
  const username = `user${users}`;
  await server.command("ACL", "SETUSER", username, ...rules);
  await permitConnecting(server, username);
  const clients = [1, 2].map(() => {
    const redis = new Redis({ port: server.port, username, password: "secret", enableReadyCheck: false });
    redis.on("error", () => {});
    return redis;
  });
  const [first, second] = clients.map((redis) => createHoldfast({ redis }));
  if (first === undefined || second === undefined) throw new Error("but two have it");
  try {
    return await sharedTour({ first, second, write: (command, ...words) => server.command(command, ...words) });
  } finally {
    await Promise.all([first.close(), second.close()]);
    for (const redis of clients) redis.disconnect();
  }
}

test("with all documented permissions, nothing is refused", async () => {
  await server.command("ACL", "LOG", "RESET");
  expect(shown(refusals(await tourAs(RULES)))).toEqual([]);
  expect(refusedIn(await server.command("ACL", "LOG"))).toEqual([]);
  expect(warnings.filter((text) => text.includes("lacks"))).toEqual([]);
});

test.concurrent.each(SHARED_LOCKS)(
  "without %s, a request is refused and the missing permission is named",
  async (permission) => {
    const complaints = await tourAs(RULES.filter((rule) => rule !== permission));
    expect(shown(others(complaints, permission))).toEqual([]);
    // A user that may not subscribe or publish polls instead, and the operator gets a warning.
    if (!complaints.some(({ missing }) => isNamed(permission, missing))) {
      await until(() => warnings.some((text) => text.includes(`lacks ${permission}`)), `a warning about ${permission}`);
    }
  },
);

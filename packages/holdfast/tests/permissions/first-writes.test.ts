/**
 * A server at `maxmemory` refuses a script whose first write may need memory. A script that renews, confirms or
 * releases must therefore not begin with such a write. The test checks every script that the tour runs against the
 * flags of COMMAND INFO.
 */
import { Redis } from "ioredis";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { startMonitor } from "../../../../tests/support/monitor.js";
import { type RedisServer, startRedis } from "../../../../tests/support/redis-server.js";
import * as redisson from "../../../interop/src/generated/redisson.js";
import * as timestamp from "../../../interop/src/generated/timestamp.js";
import * as recipes from "../../../recipes/src/generated/scripts.js";
import type { Script } from "../../src/core/store.js";
import * as pausing from "../../src/generated/pausing.js";
import * as kinds from "../../src/generated/scripts.js";
import { createHoldfast, type Holdfast } from "../../src/holdfast.js";
import { hashesOn } from "../failover/shared-scripts.js";
import { shown, tour } from "./tour.js";

vi.setConfig({ testTimeout: 150_000 });

/** Matches the scripts that a holder or a waiter depends on, by the last word of their names. */
const GIVES_BACK_OR_KEEPS = /\/(?:extend|renew|confirm|release|leave|resign|end|downgrade|reweigh)$/;

let server: RedisServer;
beforeAll(async () => {
  server = await startRedis();
});
afterAll(() => server.stop());

function isScript(value: unknown): value is Script {
  return typeof value === "object" && value !== null && "source" in value && "name" in value;
}

async function flagsOf(commands: readonly string[]): Promise<Map<string, readonly string[]>> {
  const redis = new Redis(server.port);
  const infos = (await redis.call("COMMAND", "INFO", ...commands)) as readonly (
    | readonly [string, number, string[]]
    | null
  )[];
  redis.disconnect();
  return new Map(infos.flatMap((info) => (info === null ? [] : [[info[0].toLowerCase(), info[2]] as const])));
}

test("no script that renews or releases begins with a write that needs memory", async () => {
  const monitor = await startMonitor(server, true);
  const clients = [new Redis(server.port), new Redis(server.port)] as const;
  const [first, second] = clients.map((redis) => createHoldfast({ redis })) as [Holdfast, Holdfast];
  const complaints = await tour({ first, second, forget: (key) => server.command("DEL", key) });
  expect(shown(complaints)).toEqual([]);
  await Promise.all([first.close(), second.close()]);
  for (const redis of clients) redis.disconnect();
  const lines = await monitor.sent();
  monitor.stop();

  const scripts = [kinds, pausing, recipes, redisson, timestamp].flatMap((module) =>
    Object.values(module).filter(isScript),
  );
  const hashOf = await hashesOn(server);
  const nameOf = new Map(scripts.flatMap((one) => [one.sha1, hashOf(one)].map((sha1) => [sha1, one.name] as const)));
  const runs: { readonly name: string; readonly calls: string[] }[] = [];
  for (const [command, word = ""] of lines) {
    if (command === "lua") runs.at(-1)?.calls.push(word);
    else runs.push({ name: command === "evalsha" ? (nameOf.get(word) ?? "") : "", calls: [] });
  }
  const flags = await flagsOf([...new Set(runs.flatMap(({ calls }) => calls))]);
  expect(flags.get("set"), "a write that needs memory is known as such").toContain("denyoom");
  const kept = runs.filter(({ name }) => GIVES_BACK_OR_KEEPS.test(name));
  const firstWrites = kept.flatMap(({ name, calls }) => {
    const write = calls.find((call) => flags.get(call)?.includes("write") === true);
    return write === undefined ? [] : [{ name, write }];
  });
  const seen = [...new Set(firstWrites.map(({ name }) => name))].sort();
  expect(seen).toEqual(
    expect.arrayContaining(["election/extend", "mutex/extend", "mutex/release", "permits/extend", "permits/release"]),
  );
  expect(firstWrites.filter(({ write }) => flags.get(write)?.includes("denyoom") === true)).toEqual([]);
});

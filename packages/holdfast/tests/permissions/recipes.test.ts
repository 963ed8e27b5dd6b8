/** The additional permissions that docs/permissions.md lists for recipes are sufficient, and each one is necessary. */
import { randomUUID } from "node:crypto";
import { cache, coalesce, counter, fencedSet, keyed, once, scheduled, versioned } from "@holdfast/recipes";
import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { type RedisServer, startRedis } from "../../../../tests/support/redis-server.js";
import { createHoldfast, type Holdfast } from "../../src/holdfast.js";
import { deferred } from "../../src/testing/delays.js";
import { ON_ONE_SERVER, permitConnecting, refusedIn, rulesOfRecipe } from "./acl.js";

vi.setConfig({ testTimeout: 120_000 });
const eventually = { timeout: 60_000, interval: 10 };

type Use = (holdfast: Holdfast, name: string, other: Holdfast) => Promise<unknown>;

/** Uses each recipe once from start to end, under its own name. */
const RECIPES: Readonly<Record<string, Use>> = {
  once: (holdfast, name) => once(holdfast, name, () => "done"),
  // The loader publishes only if another client waits for it.
  cache: async (holdfast, name, other) => {
    const loading = deferred<string>();
    const loaded = cache<string>(holdfast, name).get("one", () => loading.promise);
    await vi.waitFor(async () => expect(await entryOf(name)).not.toEqual([]), eventually);
    const waiting = cache<string>(other, name).get("one", () => "alone");
    await vi.waitFor(async () => expect(await entryOf(name)).toContain("waited"), eventually);
    loading.resolve("loaded");
    await Promise.all([loaded, waiting]);
    await cache<string>(holdfast, name).invalidate("one");
  },
  versioned: async (holdfast, name) => {
    const value = versioned<number>(holdfast, name);
    const watching = value.watch();
    await watching.next();
    await value.update((old) => (old ?? 0) + 1);
    await watching.next();
    await watching.return();
    await value.delete();
  },
  counter: async (holdfast, name) => {
    const stock = counter(holdfast, name);
    await stock.put(2, { requestId: "delivery" });
    await stock.take(1, { requestId: "sale" });
    await stock.read();
  },
  fencedSet: (holdfast, name) => fencedSet(holdfast, { key: `data:${name}`, value: "x", lease: { name, token: 1 } }),
  keyed: (holdfast, name) => keyed(holdfast, "events").run(name, () => {}, { eventId: "one", sequence: 1 }),
  scheduled: (holdfast, name) => scheduled(holdfast, name, () => {}, { everyMs: 60_000 })(),
  coalesce: (holdfast, name) => coalesce(holdfast, name, () => "done", { mode: "newest" }),
};

let server: RedisServer;
beforeAll(async () => {
  server = await startRedis();
});
afterAll(() => server?.stop());

/** Uses the recipe as a user with these rules. @returns the refused permissions */
async function refusedTo(recipe: string, rules: readonly string[]): Promise<string[]> {
  const username = randomUUID();
  await server.command("ACL", "SETUSER", username, ...ON_ONE_SERVER, ...rules);
  await permitConnecting(server, username);
  await server.command("ACL", "LOG", "RESET");
  const clients = [1, 2].map(() => new Redis({ port: server.port, username, password: "secret" }));
  for (const client of clients) client.on("error", () => {});
  const [holdfast, other] = clients.map((redis) => createHoldfast({ redis })) as [Holdfast, Holdfast];
  const name = randomUUID();
  // A refused user may wait for a long time. The test needs to know only that it was refused.
  let isOver = false;
  void RECIPES[recipe]?.(holdfast, name, other)
    .catch(() => {})
    .finally(() => {
      isOver = true;
    });
  await vi.waitFor(async () => expect(isOver || (await refusals()).length > 0).toBe(true), eventually);
  const refused = await refusals();
  await Promise.all([holdfast.close(), other.close()]);
  for (const client of clients) client.disconnect();
  return refused.map((each) => each.replaceAll(name, "name"));
}

/** Fields of the cache's only entry. */
async function entryOf(name: string): Promise<unknown[]> {
  const [key] = (await server.command("KEYS", `hf:cache:*${name}*`)) as string[];
  return key === undefined ? [] : ((await server.command("HKEYS", key)) as unknown[]);
}

async function refusals(): Promise<string[]> {
  return refusedIn(await server.command("ACL", "LOG"));
}

describe.each(Object.keys(RECIPES))("%s", (recipe) => {
  const rules = recipe === "fencedSet" ? ["~data:*"] : rulesOfRecipe(recipe);

  test("needs no permissions beyond the documented ones", async () => {
    expect(await refusedTo(recipe, rules)).toEqual([]);
  });

  test.each(rules)("needs %s", async (rule) => {
    const others = rules.filter((each) => each !== rule);
    expect(await refusedTo(recipe, others)).not.toEqual([]);
  });
});

/**
 * Servers that publish no messages from a script: the user may not publish, or a managed server treats PUBLISH as
 * SPUBLISH and refuses a channel in another slot. No script may stop halfway, and waiters must poll.
 */
import { embedded, Keyspace } from "@holdfast/embedded";
import { cache, once, versioned } from "@holdfast/recipes";
import { Redis } from "ioredis";
import { afterAll, expect, test, vi } from "vitest";
import { startRedis } from "../../../../tests/support/redis-server.js";
import type { Command } from "../../../embedded/src/commands/command.js";
import { server as commands } from "../../../embedded/src/commands/server.js";
import { ReplyError } from "../../../embedded/src/reply.js";
import { sha1Of } from "../../src/core/store.js";
import { createHoldfast, type Holdfast } from "../../src/holdfast.js";
import { LONG_MS, until } from "../../src/testing/delays.js";
import { ON_ONE_SERVER, rulesOfRecipe } from "./acl.js";
import { shown, tour } from "./tour.js";

vi.setConfig({ testTimeout: 150_000 });

/** Cleanup that runs at the end, in reverse order. */
const ends: (() => Promise<unknown>)[] = [];
afterAll(async () => {
  for (const end of ends.toReversed()) await end();
});

/** Left out because an observer without messages polls only every 30 s. */
const OBSERVES = "a leader is seen, and resigns";

interface Scene {
  readonly first: Holdfast;
  readonly second: Holdfast;
  forget(key: string): Promise<unknown>;
}

async function withoutPermission(rule: string): Promise<Scene> {
  const server = await startRedis();
  ends.push(() => server.stop());
  const rules = [...ON_ONE_SERVER, ...["once", "cache", "versioned"].flatMap(rulesOfRecipe)];
  await server.command("ACL", "SETUSER", "quiet", ...rules.filter((one) => one !== rule));
  const open = (): Holdfast => {
    const redis = new Redis({ port: server.port, username: "quiet", password: "secret", enableReadyCheck: false });
    const holdfast = createHoldfast({ redis });
    ends.push(async () => {
      await holdfast.close();
      redis.disconnect();
    });
    return holdfast;
  };
  return { first: open(), second: open(), forget: (key) => server.command("DEL", key) };
}

/** Replies like ElastiCache Serverless to a script that publishes to a channel in another slot than its keys. */
async function asSharded(): Promise<Scene> {
  const refused = vi.spyOn(commands.PUBLISH as Command, "run").mockImplementation(() => {
    throw new ReplyError("ERR Script attempted to access keys that do not hash to the same slot");
  });
  ends.push(async () => refused.mockRestore());
  const keyspace = new Keyspace();
  const open = (): Holdfast => {
    const holdfast = createHoldfast({ store: embedded({ keyspace }) });
    ends.push(() => holdfast.close());
    return holdfast;
  };
  const source = "return redis.call('DEL', KEYS[1])";
  const script = { name: "test/forget", source, sha1: sha1Of({ source }), keys: ["key"], args: [], replies: [] };
  return { first: open(), second: open(), forget: (key) => embedded({ keyspace }).run(script, [key], [], LONG_MS) };
}

const SCENES = {
  "a user without +publish": () => withoutPermission("+publish"),
  "a user without +pubsub|numsub": () => withoutPermission("+pubsub|numsub"),
  "a server that refuses PUBLISH in a script": asSharded,
};

// One scene after the other, because some waits must get a reply within 200 ms.
test.each(Object.entries(SCENES))("%s: every kind of lock works", async (_, open) => {
  const scene = await open();
  expect(shown(await tour(scene, { without: [OBSERVES] }))).toEqual([]);
  const leadership = await scene.first.election("chief").campaign("one");
  await scene.first.election("chief").proclaim(leadership, "two");
  expect(await scene.second.election("chief").leader()).toMatchObject({ value: "two" });
  await scene.first.election("chief").resign(leadership);
  expect(await scene.second.election("chief").leader()).toBe(null);
});

test.concurrent.each(Object.entries(SCENES))("%s: recipes poll for the result of another caller", async (_, open) => {
  const { first, second } = await open();
  let runs = 0;
  let isRunning = false;
  const work = async (): Promise<string> => {
    runs += 1;
    isRunning = true;
    await new Promise((resolve) => setTimeout(resolve, 100));
    return "done";
  };
  const begun = once(first, "payment", work);
  await until(() => isRunning, "the work");
  expect(await Promise.all([begun, once(second, "payment", work)])).toMatchObject([
    { value: "done" },
    { value: "done" },
  ]);
  expect(runs).toBe(1);
  const value = versioned<number>(first, "config");
  await value.update(() => 1);
  const watching = versioned<number>(second, "config").watch();
  expect(await watching.next()).toMatchObject({ value: { value: 1 } });
  await watching.return();
  const loading = cache<string>(first, "pages").get("one", work);
  expect(await Promise.all([loading, cache<string>(second, "pages").get("one", work)])).toEqual(["done", "done"]);
  await cache<string>(first, "pages").invalidate("one");
});

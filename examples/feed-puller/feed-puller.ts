/**
 * Three instances of a service have the same timer, and `scheduled` lets one of them pull a feed at each tick. Twice,
 * the instance that pulls is killed; another one runs at the next tick. At the end, every item has been stored once,
 * and the feed was requested at most once per tick.
 *
 *     npm run build && REDIS_URL=redis://127.0.0.1:6379 node examples/dist/feed-puller/feed-puller.js
 */
import { strict as assert } from "node:assert";
import { type ChildProcess, fork } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import process from "node:process";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import type { RunCounts } from "@holdfast/recipes";
import { Redis } from "ioredis";
import { serveFeed } from "./feed.js";

const EVERY_MS = 1_000;
const ITEMS = 40;
const KILLS = 2;
const url = process.env.REDIS_URL ?? "redis://127.0.0.1:6379";
const name = `feed ${randomUUID()}`;
const redis = new Redis(url);
const feed = await serveFeed();
let kills = 0;

/** Starts an instance. If it is killed while it pulls, starts another one in its place. */
function start(): ChildProcess {
  const program = fileURLToPath(new URL("./instance.js", import.meta.url));
  const child = fork(program, [url, feed.url, name, `${EVERY_MS}`]);
  child.on("message", (message) => {
    if (message !== "pulling" || kills >= KILLS) return;
    kills += 1;
    child.kill("SIGKILL");
    instances[instances.indexOf(child)] = start();
  });
  return child;
}

/** Tells an instance to finish. It replies with the number of its runs and skips. */
async function finish(child: ChildProcess): Promise<RunCounts> {
  const counts = new Promise<RunCounts>((resolve) => {
    child.on("message", (message) => {
      if (message !== "pulling") resolve(message as RunCounts);
    });
  });
  child.send("enough");
  const [told] = await Promise.all([counts, once(child, "exit")]);
  return told;
}

const instances: ChildProcess[] = [];
for (let count = 0; count < 3; count += 1) instances.push(start());
while ((await redis.llen(`{${name}}:items`)) < ITEMS || kills < KILLS) await pause(50);
const counts = await Promise.all(instances.map(finish));

const items = (await redis.lrange(`{${name}}:items`, 0, -1)).map(Number);
assert.deepEqual(
  items,
  items.map((_, at) => at + 1),
);
// A tick that one instance has started is skipped by all others, even if that instance was killed.
const ticks = feed.ticks.toSorted((a, b) => a - b);
for (const [at, tick] of ticks.entries()) {
  assert.ok(at === 0 || tick - (ticks[at - 1] as number) >= 0.9 * EVERY_MS, `pulled twice: ${ticks.join(", ")}`);
}
assert.ok(ticks.length >= ITEMS / 10, "each pull brings ten items");
const skipped = counts.reduce((sum, each) => sum + each.skipped["already-done"] + each.skipped.held, 0);
assert.ok(skipped > 0, "the others were told that somebody has pulled");
process.stdout.write(
  `feed-puller: ${items.length} items, each once; ${kills} pullers killed, and no tick was pulled twice\n`,
);
feed.close();
await redis.del(`{${name}}:items`, `{${name}}:token`);
redis.disconnect();

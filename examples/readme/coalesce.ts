/** Rebuilds a site after every change. Changes during a build share the next one. */
import { strict as assert } from "node:assert";
import { randomUUID } from "node:crypto";
import process from "node:process";
import { coalesce } from "@holdfast/recipes";
import { createHoldfast } from "holdfast";
import { Redis } from "ioredis";

const redis = new Redis(process.env.REDIS_URL ?? "redis://127.0.0.1:6379");
const holdfast = createHoldfast({ redis });

const site = randomUUID();
let revision = 0;
const built: number[] = [];

async function build({ signal }: { signal: AbortSignal }) {
  const upTo = revision;
  await new Promise((resolve) => setTimeout(resolve, 20));
  signal.throwIfAborted();
  built.push(upTo);
  return upTo;
}

async function changed() {
  revision += 1;
  return await coalesce(holdfast, `rebuild:${site}`, (lease) => build({ signal: lease.signal }), {
    mode: "newest", // the newest waiting caller builds; the others are superseded
    cancelRunning: false, // the current build is finished first
  });
}

const results = await Promise.all(Array.from({ length: 50 }, () => changed()));
const outcomes = results.map(({ outcome }) => outcome);
assert.equal(built.at(-1), 50, "the last build has every change");
assert.equal(built.length, outcomes.filter((outcome) => outcome === "ran").length);
assert.ok(built.length < 50);
assert.ok(outcomes.includes("superseded"));

// Callers that ask while a report is running share the next one, which starts after they asked.
const report = () => coalesce(holdfast, `report:${site}`, (lease) => build({ signal: lease.signal }), { mode: "join" });
const reports = await Promise.all([report(), report(), report()]);
for (const one of reports) {
  assert.ok(one.outcome === "ran" || one.outcome === "joined");
  assert.equal(one.value, 50);
}

await holdfast.close();
redis.disconnect();

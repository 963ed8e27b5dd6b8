/** One process leads, and the others observe it. */
import { strict as assert } from "node:assert";
import process from "node:process";
import { setTimeout as pause } from "node:timers/promises";
import { lead } from "@holdfast/recipes";
import { createHoldfast } from "holdfast";
import { Redis } from "ioredis";

const redis = new Redis(process.env.REDIS_URL ?? "redis://127.0.0.1:6379");
const holdfast = createHoldfast({ redis });

const written: { job: number; term: number }[] = [];
const routes: (string | undefined)[] = [];
const store = {
  async write(job: number, term: number) {
    assert.ok(term >= (written.at(-1)?.term ?? 0));
    written.push({ job, term });
  },
};
async function nextJob(signal: AbortSignal) {
  await pause(1, undefined, { signal });
  return written.length;
}
function route(address: string | undefined) {
  routes.push(address);
}

const election = holdfast.election("scheduler");
const leading = lead(
  election,
  async (leadership) => {
    while (!leadership.signal.aborted) {
      const job = await nextJob(leadership.signal);
      await store.write(job, leadership.term); // the store refuses a lower term than it has seen
    }
  },
  {
    value: "10.0.0.7:8080", // the address of the leader
    leaseMs: 15_000, // a crashed leader is replaced after that
    delayMaxMs: 2_000, // so that restarts do not always elect the same process
    rejoin: true, // campaigns again after a loss
  },
);

for await (const leader of election.observe()) {
  route(leader?.value); // the current state first, then each change; undefined if there is no leader
  if (leader !== null) break;
}
const { ok, role, ageMs } = election.health(20_000); // sends nothing; for a liveness probe
assert.deepEqual([ok, role, routes.at(-1)], [true, "leader", "10.0.0.7:8080"]);
assert.ok(ageMs < 20_000);

while (written.length < 3) await pause(1);
// On SIGTERM: the signal aborts, the work ends, the lease is released, and the next one leads.
await election.resign();
await leading;

assert.equal(await election.leader(), null);
assert.equal(election.health(0).role, "follower");
assert.equal(new Set(written.map(({ term }) => term)).size, 1);

await holdfast.close();
redis.disconnect();

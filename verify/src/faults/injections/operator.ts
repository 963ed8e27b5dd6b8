/** J36 to J38: changes of the server's memory by an operator or a stranger. */

import type { Injection } from "../injection.js";
import type { ServerHandle, Stage } from "../stage.js";
import { twoHolders } from "./directed.js";
import { allOf, infoNumber, keysOf, PROBE, serverOf, strikeOver } from "./striking.js";

const POLICIES = ["volatile-ttl", "volatile-lru", "allkeys-lru"] as const;
/** Memory for other keys before the first key is evicted. */
const ROOM_BYTES = 300_000;
const MOST_ROUNDS = 400;
const NOISE = `for n = 1, 50 do
  redis.call('SET', '${PROBE}noise:' .. ARGV[1] .. ':' .. n, string.rep('x', 2000), 'PX', 60000)
end`;

/** J36: memory is short, and the policy evicts keys with an expiry. The eviction check is off. */
export const eviction: Injection = {
  row: "J36",
  mutations: ["allow-eviction"],
  strike: (stage) =>
    twoHolders(stage, async (lockName) => {
      const server = serverOf(stage);
      const policy = stage.random.pick(POLICIES);
      const beganMs = stage.nowMs();
      const before = await infoNumber(server, "stats", "evicted_keys");
      const used = await infoNumber(server, "memory", "used_memory");
      await server.command("CONFIG", "SET", "maxmemory-policy", policy, "maxmemory-samples", 64);
      await server.command("CONFIG", "SET", "maxmemory", used + ROOM_BYTES);
      let isGone = false;
      for (let round = 0; round < MOST_ROUNDS && !isGone; round += 1) {
        await server.command("EVAL", NOISE, 0, round).catch(() => {});
        isGone = (await server.command("EXISTS", stage.keyPrefix(lockName))) === 0;
      }
      await server.command("CONFIG", "SET", "maxmemory", 0);
      const evicted = (await infoNumber(server, "stats", "evicted_keys")) - before;
      const proof = isGone && evicted > 0 ? `${evicted} keys evicted by ${policy}, the lock among them` : null;
      strikeOver(stage, "J36", server.name, beganMs, proof);
    }),
};

/** J36g: a server that may evict is refused at the first request. */
export const guardedEviction: Injection = {
  row: "J36g",
  serverArguments: ["--maxmemory", "100mb", "--maxmemory-policy", "volatile-ttl"],
  async strike(stage) {
    const beganMs = stage.nowMs();
    const client = stage.random.pick(stage.clients);
    const lockName = stage.newName();
    const taken = await client.take({ lockName, leaseMs: stage.leaseMs, waitMs: stage.leaseMs });
    const word = client.lastRefusal ?? "";
    const isRefused = taken === undefined && /UnsupportedError|maxmemory-policy|noeviction/.test(word);
    strikeOver(stage, "J36g", client.name, beganMs, isRefused ? word : null);
    if (taken !== undefined) await client.release(taken.leaseId);
  },
};

/** J37: everything is flushed, or the keys of a lock are deleted. */
export const foreignDelete: Injection = {
  row: "J37",
  strike: (stage) =>
    twoHolders(stage, async (lockName) => {
      const server = serverOf(stage);
      const beganMs = stage.nowMs();
      const before = await keysOf(stage, lockName);
      const isFlush = stage.random.chance(0.5);
      if (isFlush) await server.command("FLUSHALL");
      else if (before.length > 0) await server.command("DEL", ...before);
      const after = await keysOf(stage, lockName);
      const what = isFlush ? "FLUSHALL" : "DEL";
      const proof = before.length > 0 && after.length === 0 ? `${what} took ${before.length} keys` : null;
      strikeOver(stage, "J37", server.name, beganMs, proof);
    }),
};

/** Deletes every fence counter that matches the pattern. @returns how many there were, or null if none */
async function deleteFences(server: ServerHandle, pattern: string): Promise<string | null> {
  const fences = (await server.command("KEYS", pattern)) as string[];
  if (fences.length === 0) return null;
  let deleted = 0;
  // One by one, because a cluster stores them in different slots.
  for (const fence of fences) deleted += Number(await server.command("DEL", fence));
  return deleted > 0 ? `${deleted} counters deleted` : null;
}

/** The shortest way to a token that does not rise: grant, delete the counter, grant. */
export async function repeatToken(stage: Stage, forget: (lockName: string) => Promise<void>): Promise<void> {
  const lockName = stage.newName();
  const { leaseMs } = stage;
  for (let round = 0; round < 3; round += 1) {
    const client = stage.random.pick(stage.clients);
    const taken = await client.take({ lockName, leaseMs, waitMs: 2 * leaseMs });
    if (taken !== undefined) await client.release(taken.leaseId);
    if (round < 2) await forget(lockName);
  }
}

/** J38, as a control: the counter restarts at 1. */
export const plainCounterDeleted: Injection = {
  row: "J38-plain",
  mutations: ["plain-counter"],
  strike: (stage) => repeatToken(stage, (lockName) => deleteOne(stage, lockName)),
};

async function deleteOne(stage: Stage, lockName: string): Promise<void> {
  for (const server of allOf(stage)) {
    const beganMs = stage.nowMs();
    strikeOver(stage, "J38", server.name, beganMs, await deleteFences(server, stage.fenceKey(lockName)));
  }
}

/** J38: the counters of all locks in use are deleted repeatedly. */
export const seededCounterDeleted: Injection = {
  row: "J38-seeded",
  work: (stage) => ({
    names: 3,
    sessions: 2,
    leaseMs: stage.leaseMs,
    holdMs: 30,
    waitMs: 4 * stage.leaseMs,
    effects: "none",
  }),
  async strike(stage) {
    const server = serverOf(stage);
    const beganMs = stage.nowMs();
    const proofs: string[] = [];
    for (let round = 0; round < 10; round += 1) {
      for (const one of allOf(stage)) {
        const proof = await deleteFences(one, "hf:*:fence");
        if (proof !== null) proofs.push(proof);
      }
      await stage.sleep(stage.random.between(0, 60));
    }
    strikeOver(
      stage,
      "J38",
      server.name,
      beganMs,
      proofs.length > 0 ? `${proofs.length} times, last ${proofs.at(-1)}` : null,
    );
    await repeatToken(stage, (lockName) => deleteOne(stage, lockName));
  },
};

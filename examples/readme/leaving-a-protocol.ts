import { strict as assert } from "node:assert";
import { javaGetSet, timestampLock } from "@holdfast/interop/timestamp";
import { createHoldfast, type Lock, type MultiLock } from "holdfast";
import { Redis } from "ioredis";

const redis = new Redis(process.env.REDIS_URL ?? "redis://127.0.0.1:6379");
const holdfast = createHoldfast({ redis });

type Phase = "theirs" | "both" | "ours";

function accountLock(id: string, phase: Phase): Lock | MultiLock {
  const name = `account:${id}`;
  const theirs = timestampLock(holdfast, name, javaGetSet);
  if (phase === "theirs") return theirs;
  const ours = holdfast.mutex(name);
  return phase === "both" ? holdfast.multiLock([theirs, ours]) : ours;
}

// During each rollout, two phases are in use at the same time, and neighboring phases exclude each other.
const pairs: readonly (readonly [Phase, Phase])[] = [
  ["theirs", "both"],
  ["both", "ours"],
];
for (const [before, after] of pairs) {
  for (const [first, second] of [
    [before, after],
    [after, before],
  ] as const) {
    const lease = await accountLock("1", first).acquire();
    assert.equal(await accountLock("1", second).tryAcquire(), null);
    await lease.release();
    const next = await accountLock("1", second).acquire();
    await next.release();
  }
}

// The Java side is excluded up to the last rollout, but not after it.
for (const [phase, isExcluded] of [
  ["theirs", true],
  ["both", true],
  ["ours", false],
] as const) {
  const lease = await accountLock("1", phase).acquire();
  assert.equal((await redis.setnx("account:1_lock", Date.now() + 60_001)) === 0, isExcluded);
  if (!isExcluded) await redis.del("account:1_lock");
  await lease.release();
}

await holdfast.close();
redis.disconnect();

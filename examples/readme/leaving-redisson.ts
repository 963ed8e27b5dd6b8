import { strict as assert } from "node:assert";
import { redisson } from "@holdfast/interop/redisson";
import { createHoldfast, type Lease, type MultiLease } from "holdfast";
import { Redis } from "ioredis";

const redis = new Redis(process.env.REDIS_URL ?? "redis://127.0.0.1:6379");
const holdfast = createHoldfast({ redis });
const locks = redisson(holdfast);

type Phase = "theirs" | "both" | "ours";

/** The tokens of the locks that a holder has; it passes them to the resource. */
type Tokens = Partial<Record<"theirs" | "ours", number>>;

async function lockOrder(
  id: string,
  phase: Phase,
  waitMs: number,
): Promise<{ lease: Lease | MultiLease; tokens: Tokens }> {
  const theirs = locks.fencedLock(`order:${id}`); // Java: getFencedLock("order:" + id)
  const ours = holdfast.mutex(`order:${id}`);
  if (phase === "theirs") {
    const lease = await theirs.acquire({ waitMs });
    return { lease, tokens: { theirs: lease.token } };
  }
  if (phase === "ours") {
    const lease = await ours.acquire({ waitMs });
    return { lease, tokens: { ours: lease.token } };
  }
  // Acquired in the order of their keys, which is the same for all callers.
  const lease = await holdfast.multiLock([theirs, ours]).acquire({ waitMs });
  const [first, second] = lease.leases;
  return { lease, tokens: { theirs: first?.token ?? 0, ours: second?.token ?? 0 } };
}

const marks: Required<Tokens> = { theirs: 0, ours: 0 };

/** One mark per lock while both are in use, so that a holder is compared only with holders of the same lock. */
function accepts(tokens: Tokens): boolean {
  const given = Object.entries(tokens) as ["theirs" | "ours", number][];
  if (given.some(([lock, token]) => token < marks[lock])) return false;
  for (const [lock, token] of given) marks[lock] = token;
  return true;
}

// Changes the keys on the server like a Java service that calls tryLockAndGetToken() and unlock().
const JAVA_LOCK = `if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
  redis.call('HSET', KEYS[1], ARGV[1], 1) redis.call('PEXPIRE', KEYS[1], 30000) return redis.call('INCR', KEYS[2])`;
const KEYS = ["order:1", "redisson_lock_token:{order:1}"] as const;
const java = async (): Promise<number> => Number(await redis.eval(JAVA_LOCK, 2, ...KEYS, "a-java-service:1"));
const javaUnlocks = (): Promise<number> => redis.del("order:1");

const isRefused = async (phase: Phase): Promise<boolean> => {
  const end = await lockOrder("1", phase, 100).catch(() => undefined);
  await end?.lease.release();
  return end === undefined;
};

// Steps 1 to 4: all services that are in use at the same time exclude each other, including Java.
const stepOf: Readonly<Record<1 | 2 | 3 | 4, readonly Phase[]>> = {
  1: ["theirs"],
  2: ["theirs", "both"],
  3: ["both"],
  4: ["both"],
};
for (const [step, alive] of Object.entries(stepOf)) {
  for (const first of alive) {
    const { lease, tokens } = await lockOrder("1", first, 1_000);
    assert.ok(accepts(tokens), `step ${step}`);
    for (const second of alive) assert.ok(await isRefused(second), `step ${step}: ${second} beside ${first}`);
    assert.equal(await java(), 0, `step ${step}: Java beside ${first}`);
    await lease.release();
  }
  const token = await java();
  assert.ok(accepts({ theirs: token }), "Java goes on where ours have ended");
  for (const second of alive) assert.ok(await isRefused(second), `step ${step}: ${second} beside Java`);
  await javaUnlocks();
}

// Step 5: Java is no longer used. `both` and `ours` exclude each other, and the tokens of each lock keep rising.
const stale = await lockOrder("1", "both", 1_000);
await stale.lease.release();
for (const [first, second] of [
  ["both", "ours"],
  ["ours", "both"],
] as const) {
  const { lease, tokens } = await lockOrder("1", first, 1_000);
  assert.ok(await isRefused(second), `step 5: ${second} beside ${first}`);
  assert.ok(accepts(tokens), `step 5: ${first}`);
  await lease.release();
}
assert.equal(accepts(stale.tokens), false, "an old holder is refused, whichever lock it shares with the last one");

// A mistake: a service uses `ours` while Java is still in use.
const tooSoon = await lockOrder("1", "ours", 1_000);
assert.notEqual(await java(), 0, "both hold");
await javaUnlocks();
await tooSoon.lease.release();

// Step 6: only the counter of the fenced lock remains of Redisson; it never expires.
await redis.del("redisson_lock_token:{order:1}");
assert.deepEqual(await redis.keys("*order:1*unlock_latch*"), []);

await holdfast.close();
redis.disconnect();

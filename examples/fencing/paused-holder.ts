/**
 * The accident that fencing tokens prevent, with real processes: a process checks that it holds the lock, and SIGSTOP
 * stops it right afterward. Its lease ends, and the next holder writes. Then the process resumes, and writes too.
 *
 * Each round runs twice in parallel: with a plain SET, which must overwrite the later value, and with `fencedSet`,
 * which must be refused. Needs a Redis (REDIS_URL). The process is holder.ts.
 */
import { strict as assert } from "node:assert";
import { fork } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import process from "node:process";
import { fencedSet } from "@holdfast/recipes";
import { createHoldfast } from "holdfast";
import { Redis } from "ioredis";
import type { HolderEnd, HolderTask } from "./holder.js";

const ROUNDS = 3;
const redisUrl = process.env.REDIS_URL ?? "redis://127.0.0.1:6379";
const redis = new Redis(redisUrl);
const holdfast = createHoldfast({ redis });

/** Plays one round. @returns whether the late write has overwritten the value of the next holder */
async function play(isFenced: boolean): Promise<boolean> {
  const key = `paused-holder:${randomUUID()}`;
  const late = fork(new URL("./holder.js", import.meta.url));
  try {
    late.send({ redisUrl, key, isFenced } satisfies HolderTask);
    await once(late, "message"); // it holds the lock and is about to stop
    const ending = once(late, "message");

    // Granted only when the lease of the stopped process has ended.
    await holdfast.mutex(key).run(
      async (lease) => {
        await fencedSet(redis, { key, value: "the next holder's", lease });
        late.kill("SIGCONT");
        const [{ refusal, heldWhenItWrote }] = (await ending) as [HolderEnd];
        assert.equal(heldWhenItWrote, false);
        assert.equal(refusal, isFenced ? "StaleTokenError" : null);
      },
      { waitMs: 60_000 },
    );
    return (await redis.get(key)) !== "the next holder's";
  } finally {
    late.kill("SIGKILL");
    await redis.del(key, `hf:fence:mapped:{${key}}`); // also its highest token, which never expires
  }
}

let corrupted = 0;
let corruptedInSpite = 0;
for (let round = 0; round < ROUNDS; round += 1) {
  const [plain, fenced] = await Promise.all([play(false), play(true)]);
  if (plain) corrupted += 1;
  if (fenced) corruptedInSpite += 1;
}
process.stdout.write(
  `paused-holder: ${corrupted} of ${ROUNDS} values overwritten without the token, ${corruptedInSpite} with it\n`,
);
assert.equal(corrupted, ROUNDS);
assert.equal(corruptedInSpite, 0);

await holdfast.close();
redis.disconnect();

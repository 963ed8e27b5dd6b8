/** The process that paused-holder.ts starts. It stops between the check of its lease and its write. */
import process from "node:process";
import { fencedSet } from "@holdfast/recipes";
import { createHoldfast } from "holdfast";
import { Redis } from "ioredis";

/** The task that the parent sends. */
export interface HolderTask {
  readonly redisUrl: string;
  readonly key: string;
  /** Whether it writes with its fencing token, or with a plain SET. */
  readonly isFenced: boolean;
}

/** The result that it sends to the parent. */
export interface HolderEnd {
  /** The name of the error that refused its write; null if it has written. */
  readonly refusal: string | null;
  readonly heldWhenItWrote: boolean;
}

process.once("message", (task) => void play(task as HolderTask));

async function play({ redisUrl, key, isFenced }: HolderTask): Promise<void> {
  const redis = new Redis(redisUrl);
  const holdfast = createHoldfast({ redis });
  const lease = await holdfast.mutex(key).acquire({ leaseMs: 2_000 });
  await say("holding");
  lease.assertHeld(); // passes: the lease is still held
  process.kill(process.pid, "SIGSTOP"); // like a machine that freezes
  const heldWhenItWrote = lease.validForMs() > 0;
  let refusal: string | null = null;
  try {
    if (isFenced) await fencedSet(redis, { key, value: "too late", lease });
    else await redis.set(key, "too late");
  } catch (error) {
    refusal = (error as Error).name;
  }
  await say({ refusal, heldWhenItWrote } satisfies HolderEnd);
  process.exit();
}

/** Sends a message to the parent. Resolves when it was sent. */
function say(message: HolderEnd | string): Promise<void> {
  return new Promise((resolve) => process.send?.(message, undefined, undefined, () => resolve()));
}

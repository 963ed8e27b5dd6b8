/** The process of paused-holder.ts that is stopped between its look at the lease and its write. */
import process from "node:process";
import { fencedSet } from "@holdfast/recipes";
import { createHoldfast } from "holdfast";
import { Redis } from "ioredis";

/** What it is sent. */
export interface HolderTask {
  readonly redisUrl: string;
  readonly key: string;
  /** Whether it writes with its token, or plainly. */
  readonly isFenced: boolean;
}

/** What it says in the end. */
export interface HolderEnd {
  /** Name of the error with which it was turned away; null if it has written. */
  readonly refusal: string | null;
  readonly heldWhenItWrote: boolean;
}

process.once("message", (task) => void play(task as HolderTask));

async function play({ redisUrl, key, isFenced }: HolderTask): Promise<void> {
  const redis = new Redis(redisUrl);
  const holdfast = createHoldfast({ redis });
  const lease = await holdfast.mutex(key).acquire({ leaseMs: 2_000 });
  await say("holding");
  lease.assertHeld(); // Is it still mine? It is.
  process.kill(process.pid, "SIGSTOP"); // The machine stands still for as long as it likes.
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

/** Resolves when it is on its way. */
function say(message: HolderEnd | string): Promise<void> {
  return new Promise((resolve) => process.send?.(message, undefined, undefined, () => resolve()));
}

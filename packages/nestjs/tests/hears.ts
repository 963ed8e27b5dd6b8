/** Waits until a holder can be notified of a force-release, because a new client does not subscribe immediately. */
import type { Redis } from "ioredis";
import { expect, vi } from "vitest";

/** Resolves when the client of that owner is subscribed to its inbox. */
export async function hears(redis: Redis, owner: string): Promise<void> {
  const inbox = `hf:in:${owner.split("/")[0]}`;
  const listeners = async (): Promise<unknown> => await redis.pubsub("NUMSUB", inbox);
  await vi.waitFor(async () => expect(await listeners()).toEqual([inbox, 1]), { timeout: 60_000, interval: 10 });
}

/** A sale: so many items, more buyers, in several processes at once; and a count at the end. */
import { type ChildProcess, fork } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { createHoldfast } from "holdfast";
import { Redis } from "ioredis";
import type { BuyersEnd, BuyersTask } from "./buyers.js";
import { shop, type Way } from "./shop.js";

/** How large it is. */
export interface SaleSize {
  readonly items: number;
  readonly buyers: number;
  readonly processes: number;
}

/** What came of it. */
export interface SaleEnd {
  /** Orders that were taken. */
  readonly sold: number;
  /** Different numbers among them. */
  readonly numbers: number;
  /** On the shelf. */
  readonly left: number;
  /** From the word to the last answer. */
  readonly tookMs: number;
}

/** Holds a sale on a shop of its own. */
export async function hold(way: Way, redisUrl: string, { items, buyers, processes }: SaleSize): Promise<SaleEnd> {
  const name = `sale:${randomUUID()}`;
  const redis = new Redis(redisUrl);
  const holdfast = createHoldfast({ redis });
  const item = shop(way, { redis, holdfast, name });
  await item.open(items);
  const crowd = Array.from({ length: processes }, () => fork(new URL("./buyers.js", import.meta.url)));
  try {
    const tasks = crowd.map((_, at): BuyersTask => {
      const own = Math.floor(buyers / processes) + (at < buyers % processes ? 1 : 0);
      return { redisUrl, way, name, at, buyers: own };
    });
    await Promise.all(crowd.map((child, at) => ask(child, tasks[at] as BuyersTask)));
    const startedAtMs = performance.now();
    const ends = await Promise.all(crowd.map((child) => ask<BuyersEnd>(child, "go")));
    const tookMs = performance.now() - startedAtMs;
    const orders = ends.flatMap((end) => end.orders);
    return { sold: orders.length, numbers: new Set(orders).size, left: await item.left(), tookMs };
  } finally {
    for (const child of crowd) child.kill();
    for await (const keys of redis.scanStream({ match: `*${name}*`, count: 1_000 })) {
      if (keys.length > 0) await redis.del(...(keys as string[]));
    }
    await holdfast.close();
    redis.disconnect();
  }
}

/** Sends a message, and waits for the next that comes back. */
async function ask<Answer>(child: ChildProcess, message: BuyersTask | "go"): Promise<Answer> {
  const answer = once(child, "message");
  const ended = once(child, "exit").then(([code, signal]) => {
    throw new Error(`buyers ended (${signal ?? code}) before they had answered`);
  });
  ended.catch(() => {});
  child.send(message);
  const [got] = await Promise.race([answer, ended]);
  return got as Answer;
}

/** Runs a sale with more buyers than items in several processes, which may be killed, and counts the orders. */
import { type ChildProcess, fork } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { createHoldfast } from "holdfast";
import { Redis } from "ioredis";
import type { BuyersEnd, BuyersTask } from "./buyers.js";
import { shop, type Way } from "./shop.js";

/** The size of a sale. */
export interface SaleSize {
  readonly items: number;
  readonly buyers: number;
  readonly processes: number;
  /** Whether each process is killed in the middle, and another one repeats all of its orders. @default false */
  readonly withKills?: boolean;
}

/** The result of a sale. */
export interface SaleEnd {
  /** The number of accepted orders. */
  readonly sold: number;
  /** The number of different order numbers. */
  readonly numbers: number;
  /** The remaining items. */
  readonly left: number;
  /** The number of processes that ended by SIGKILL. */
  readonly killed: number;
  /** The time from the start signal to the last reply. */
  readonly tookMs: number;
}

/** Runs a sale in a new shop. */
export async function hold(way: Way, redisUrl: string, size: SaleSize): Promise<SaleEnd> {
  const { items, buyers, processes, withKills = false } = size;
  const name = `sale:${randomUUID()}`;
  const redis = new Redis(redisUrl);
  const holdfast = createHoldfast({ redis });
  const item = shop(way, { redis, holdfast, name });
  await item.open(items);
  const crowd: ChildProcess[] = [];
  const prepare = async (task: BuyersTask): Promise<ChildProcess> => {
    const child = fork(new URL("./buyers.js", import.meta.url));
    crowd.push(child);
    await ask(child, task);
    return child;
  };
  try {
    const tasks = Array.from({ length: processes }, (_, at): BuyersTask => {
      const own = Math.floor(buyers / processes) + (at < buyers % processes ? 1 : 0);
      return { redisUrl, way, name, at, buyers: own, isKilled: withKills };
    });
    const children = await Promise.all(tasks.map(prepare));
    const startedAtMs = performance.now();
    let killed = 0;
    const serve = async (child: ChildProcess, task: BuyersTask): Promise<BuyersEnd> => {
      if (!task.isKilled) return await ask<BuyersEnd>(child, "go");
      const ended = once(child, "exit");
      child.send("go");
      const [code, signal] = await ended;
      if (signal !== "SIGKILL") throw new Error(`buyers ended (${signal ?? code}) before they were killed`);
      killed += 1;
      // It is unknown what the killed process bought, so repeat all of its orders with the same ids.
      const again = { ...task, isKilled: false };
      return await serve(await prepare(again), again);
    };
    const ends = await Promise.all(children.map((child, at) => serve(child, tasks[at] as BuyersTask)));
    const tookMs = performance.now() - startedAtMs;
    const orders = ends.flatMap((end) => end.orders);
    return { sold: orders.length, numbers: new Set(orders).size, left: await item.left(), killed, tookMs };
  } finally {
    for (const child of crowd) child.kill();
    for await (const keys of redis.scanStream({ match: `*${name}*`, count: 1_000 })) {
      if (keys.length > 0) await redis.del(...(keys as string[]));
    }
    await holdfast.close();
    redis.disconnect();
  }
}

/** Sends a message and waits for the next one that comes back. */
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

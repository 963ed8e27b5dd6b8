/** A process full of buyers: it waits for the word, and then all of them buy at once. */
import process from "node:process";
import { createHoldfast } from "holdfast";
import { Redis } from "ioredis";
import { shop, type Way } from "./shop.js";

/** What it is sent first. */
export interface BuyersTask {
  readonly redisUrl: string;
  readonly way: Way;
  readonly name: string;
  /** Which of the processes it is. */
  readonly at: number;
  readonly buyers: number;
  /** Whether it is killed when half of its buyers have an answer, which dies with it. */
  readonly isKilled: boolean;
}

/** What it says when all have been served. */
export interface BuyersEnd {
  /** Numbers of the orders. */
  readonly orders: readonly number[];
}

process.once("message", (task) => void prepare(task as BuyersTask));

async function prepare({ redisUrl, way, name, at, buyers, isKilled }: BuyersTask): Promise<void> {
  const redis = new Redis(redisUrl);
  const holdfast = createHoldfast({ redis });
  // Connections are there, and the server knows the scripts, before anybody looks at a clock.
  const rehearsal = shop(way, { redis, holdfast, name: `${name}:rehearsal:${at}` });
  await rehearsal.open(1);
  await Promise.all([rehearsal.buy("one"), rehearsal.buy("two")]);
  process.once("message", () => void buy());
  process.send?.("ready");

  async function buy(): Promise<void> {
    const item = shop(way, { redis, holdfast, name });
    let answered = 0;
    const bought = await Promise.all(
      Array.from({ length: buyers }, async (_, buyer) => {
        const number = await item.buy(`order:${at}:${buyer}`);
        answered += 1;
        // By its own hand, so that it is in the middle on a machine of any speed. It has told nobody what it bought.
        if (isKilled && answered === Math.ceil(buyers / 2)) process.kill(process.pid, "SIGKILL");
        return number;
      }),
    );
    await holdfast.close();
    redis.disconnect();
    const orders = bought.filter((number) => number !== null);
    process.send?.({ orders } satisfies BuyersEnd, () => process.disconnect());
  }
}

/** A process with many buyers. When the parent says "go", all of them buy at the same time. */
import process from "node:process";
import { createHoldfast } from "holdfast";
import { Redis } from "ioredis";
import { shop, type Way } from "./shop.js";

/** The first message from the parent. */
export interface BuyersTask {
  readonly redisUrl: string;
  readonly way: Way;
  readonly name: string;
  /** The number of this process. */
  readonly at: number;
  readonly buyers: number;
  /** Whether it kills itself when half of its buyers have a reply. It reports none of them. */
  readonly isKilled: boolean;
}

/** The message to the parent when all buyers have a reply. */
export interface BuyersEnd {
  /** The numbers of the orders. */
  readonly orders: readonly number[];
}

process.once("message", (task) => void prepare(task as BuyersTask));

async function prepare({ redisUrl, way, name, at, buyers, isKilled }: BuyersTask): Promise<void> {
  const redis = new Redis(redisUrl);
  const holdfast = createHoldfast({ redis });
  // Connects and loads the scripts before the time is measured.
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
        // The process kills itself, so that this happens in the middle on any machine. It has not reported its orders.
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

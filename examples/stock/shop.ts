/** One item for sale, in three ways: two steps with nothing around them, the same two steps under a lock, and one step. */

import { counter } from "@holdfast/recipes";
import type { Holdfast, Lease } from "holdfast";
import type { Redis } from "ioredis";

/** How a shop sells. */
export type Way = "unlocked" | "locked" | "guarded";

/** A shop with some of one item. */
export interface Shop {
  /** Puts so many on the shelf, once, before anybody buys. */
  open(items: number): Promise<void>;
  /** Sells one. @returns the number of the order; null if there was none left */
  buy(orderId: string): Promise<number | null>;
  /** What is on the shelf. */
  left(): Promise<number>;
}

/** The shop of that name. */
export function shop(way: Way, { redis, holdfast, name }: ShopPlace): Shop {
  if (way === "guarded") return guarded({ redis, holdfast, name });
  return way === "locked" ? locked({ redis, holdfast, name }) : unlocked({ redis, name });
}

/** Where it is. */
export interface ShopPlace {
  readonly redis: Redis;
  readonly holdfast: Holdfast;
  readonly name: string;
}

/** A number that nobody else has takes no lock. */
function orderNumber({ redis, name }: Pick<ShopPlace, "redis" | "name">): Promise<number> {
  return redis.incr(`${name}:orders`);
}

/** Reads, then sets: a buyer that reads in between sells the same item again. */
async function buyInTwoSteps(
  { redis, name }: Pick<ShopPlace, "redis" | "name">,
  lease?: Lease,
): Promise<number | null> {
  const left = Number(await redis.get(name));
  if (left < 1) return null;
  lease?.assertHeld();
  await redis.set(name, left - 1);
  return await orderNumber({ redis, name });
}

function unlocked({ redis, name }: Pick<ShopPlace, "redis" | "name">): Shop {
  return {
    open: async (items) => void (await redis.set(name, items)),
    buy: () => buyInTwoSteps({ redis, name }),
    left: async () => Number(await redis.get(name)),
  };
}

/**
 * The same two steps, one buyer at a time. A buyer that freezes after reading sells nothing. One whose write is late may: that
 * needs `fencedSet`.
 */
function locked({ redis, holdfast, name }: ShopPlace): Shop {
  return {
    ...unlocked({ redis, name }),
    buy: () => holdfast.mutex(name).run((lease) => buyInTwoSteps({ redis, name }, lease), { waitMs: 600_000 }),
  };
}

/** One step, counted once for each order, not for each attempt. */
function guarded({ redis, holdfast, name }: ShopPlace): Shop {
  const stock = counter(holdfast, name, { min: 0 });
  return {
    open: async (items) => void (await stock.put(items, { requestId: "opening" })),
    async buy(orderId) {
      return (await stock.take(1, { requestId: orderId })) === null ? null : await orderNumber({ redis, name });
    },
    left: () => stock.read(),
  };
}

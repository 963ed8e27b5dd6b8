/** Three ways to sell an item: two steps without a lock, the same two steps with a lock, and one atomic step. */

import { counter } from "@holdfast/recipes";
import type { Holdfast, Lease } from "holdfast";
import type { Redis } from "ioredis";

/** How a shop sells its item. */
export type Way = "unlocked" | "locked" | "guarded";

/** A shop that sells one item. */
export interface Shop {
  /** Sets the number of items, once, before the first sale. */
  open(items: number): Promise<void>;
  /** Sells one. @returns the order number; null if sold out */
  buy(orderId: string): Promise<number | null>;
  /** The remaining items. */
  left(): Promise<number>;
}

/** Opens the shop `name`. */
export function shop(way: Way, { redis, holdfast, name }: ShopPlace): Shop {
  if (way === "guarded") return guarded({ redis, holdfast, name });
  return way === "locked" ? locked({ redis, holdfast, name }) : unlocked({ redis, name });
}

/** The server and the name of a shop. */
export interface ShopPlace {
  readonly redis: Redis;
  readonly holdfast: Holdfast;
  readonly name: string;
}

/** A unique order number. This needs no lock. */
function orderNumber({ redis, name }: Pick<ShopPlace, "redis" | "name">): Promise<number> {
  return redis.incr(`${name}:orders`);
}

/** Reads the stock and then sets it. Without a lock, a buyer that reads in between sells the same item again. */
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
 * The same two steps, one buyer at a time. A buyer that freezes after reading sells nothing. But a write that is
 * delayed on its way may still take effect; to prevent that, use `fencedSet`.
 */
function locked({ redis, holdfast, name }: ShopPlace): Shop {
  return {
    ...unlocked({ redis, name }),
    buy: () => holdfast.mutex(name).run((lease) => buyInTwoSteps({ redis, name }, lease), { waitMs: 600_000 }),
  };
}

/** One atomic step. A repeated order is counted once. */
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

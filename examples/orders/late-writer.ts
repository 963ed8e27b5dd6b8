/**
 * What the fencing token is for, in one scene.
 *
 * A copy begins a payment, sleeps through the end of its lease (a long garbage collection, a laptop lid), and goes on as if
 * nothing had happened. No record on a server can stop it: it asks nobody. The table can, because it compares tokens.
 */

import { once } from "@holdfast/recipes";
import type { Holdfast } from "holdfast";
import { OrderTable, readOrders, StaleFenceError } from "./order-table.js";

/** How the scene ended. */
export interface LateWriter {
  readonly sleeperToken: number;
  readonly nextToken: number;
  /** The table's answer to the sleeper; null if it took the order, and then the fence is broken. */
  readonly refusal: string | null;
  /** Orders in the table at the end. */
  readonly orders: number;
}

/**
 * Plays the scene on a table of its own.
 *
 * @param ordersFile  file of that table; overwritten
 */
export async function playLateWriter(holdfast: Holdfast, ordersFile: string): Promise<LateWriter> {
  const table = new OrderTable(ordersFile);
  const payment = { paymentId: "pay-late", customer: "customer-000", cartId: "cart-late", amountCents: 4_200 };
  const row = { ...payment, receipt: "receipt-late" };
  const key = `payment:${payment.paymentId}`;
  let fallAsleep = (_token: number): void => {};
  let wake = (): void => {};
  const asleep = new Promise<number>((resolve) => {
    fallAsleep = resolve;
  });
  const awake = new Promise<void>((resolve) => {
    wake = resolve;
  });

  // Its lease ends after 100 ms, and is not renewed any more. Its signal has aborted by then, but it is not looking.
  const sleeper = once(
    holdfast,
    key,
    async (lease) => {
      table.find(payment.paymentId, lease.token);
      fallAsleep(lease.token);
      await awake;
      return table.insert({ ...row, writtenBy: "the sleeper" }, lease.token);
    },
    { leaseMs: 100, maxHoldMs: 100 },
  ).then(
    () => null,
    (error: unknown) => {
      if (error instanceof StaleFenceError) return error.message;
      throw error;
    },
  );
  const sleeperToken = await asleep;

  let refusal: string | null = null;
  const next = await once(holdfast, key, async (lease) => {
    table.find(payment.paymentId, lease.token);
    wake();
    refusal = await sleeper;
    return table.insert({ ...row, writtenBy: "the next attempt" }, lease.token);
  });
  return { sleeperToken, nextToken: next.token, refusal, orders: readOrders(ordersFile).length };
}

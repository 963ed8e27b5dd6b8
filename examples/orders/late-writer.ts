/**
 * A demonstration of fencing tokens.
 *
 * A copy begins a payment, sleeps past the end of its lease (a long garbage collection, a closed laptop), and
 * continues as if nothing had happened. It sends no request to the lock server, so only the table can stop it: it
 * compares tokens.
 */

import { once } from "@holdfast/recipes";
import type { Holdfast } from "holdfast";
import { OrderTable, readOrders, StaleFenceError } from "./order-table.js";

/** The result of the demonstration. */
export interface LateWriter {
  readonly sleeperToken: number;
  readonly nextToken: number;
  /** The error of the late write; null if the table accepted it, which means that the fence is broken. */
  readonly refusal: string | null;
  /** Orders in the table at the end. */
  readonly orders: number;
}

/**
 * Runs the demonstration on a new table.
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

  // The lease ends after 100 ms and is not renewed. The signal has aborted by then, but this copy does not check it.
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

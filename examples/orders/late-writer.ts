/**
 * What the fencing token is for, in one scene.
 *
 * A copy takes a short lease, sleeps through its end (a long garbage collection, a laptop lid), and goes on as if
 * nothing had happened. No lock service can stop it: it asks nobody. The table can, because it compares tokens.
 */
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
  const mutex = holdfast.mutex(`payment:${payment.paymentId}`);

  const sleeper = await mutex.acquire({ leaseMs: 100, renew: false });
  table.find(payment.paymentId, sleeper.token);

  // Granted when the sleeper's lease is over. The sleeper's signal has aborted by then, but it is not looking.
  const next = await mutex.acquire({ waitMs: 5_000 });
  table.find(payment.paymentId, next.token);

  let refusal: string | null = null;
  try {
    table.insert({ ...row, writtenBy: "the sleeper" }, sleeper.token);
  } catch (error) {
    if (!(error instanceof StaleFenceError)) throw error;
    refusal = error.message;
  }
  table.insert({ ...row, writtenBy: "the next holder" }, next.token);
  await next.release();
  return { sleeperToken: sleeper.token, nextToken: next.token, refusal, orders: readOrders(ordersFile).length };
}

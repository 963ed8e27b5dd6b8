/**
 * The shop's database: one table of orders, kept as a file with one JSON line per order, so that it can be read.
 *
 * On purpose it has no unique index on the payment: it takes every order it is given, so what keeps duplicates
 * out is the record of the request. What it does have is the fence. An attempt that sleeps past the end of its lease and then writes
 * has a lower token than the one who came after it, and the table refuses a token lower than one it has seen for
 * that payment. Looking counts as seeing: who finds no order has thereby shut out everyone before it.
 */
import { appendFileSync, readFileSync, writeFileSync } from "node:fs";
import { postJson, type Service, serveJson } from "./loopback-http.js";
import type { Payment } from "./submissions.js";

/** One row. */
export interface Order extends Payment {
  readonly orderId: string;
  readonly receipt: string;
  /** Name of the copy that wrote it. */
  readonly writtenBy: string;
}

/** The fencing token of whoever asks; undefined without one, and then nothing is checked. */
export type Fence = number | undefined;

/** Somebody with a higher token has been here. Nothing was written; the caller's attempt is over. */
export class StaleFenceError extends Error {
  constructor(paymentId: string, fence: number, seen: number) {
    super(`the order table refuses token ${fence} for ${paymentId}: it has seen token ${seen}`);
    this.name = "StaleFenceError";
  }
}

/** The table itself. Each method is one step that nothing can interrupt, like a statement of a database. */
export class OrderTable {
  readonly #file: string;
  readonly #firstOf = new Map<string, Order>();
  readonly #highestFenceOf = new Map<string, number>();
  #lastOrder = 0;

  /** Begins an empty table in `file`, which is overwritten. */
  constructor(file: string) {
    this.#file = file;
    writeFileSync(file, "");
  }

  /**
   * The first order of a payment, or null.
   *
   * @throws StaleFenceError  `fence` is lower than one seen before
   */
  find(paymentId: string, fence: Fence): Order | null {
    this.#check(paymentId, fence);
    return this.#firstOf.get(paymentId) ?? null;
  }

  /**
   * Writes an order and empties its cart, in one transaction.
   *
   * @throws StaleFenceError  `fence` is lower than one seen before
   */
  insert(row: Omit<Order, "orderId">, fence: Fence): Order {
    this.#check(row.paymentId, fence);
    this.#lastOrder += 1;
    const order: Order = { orderId: `order-${String(this.#lastOrder).padStart(4, "0")}`, ...row };
    appendFileSync(this.#file, `${JSON.stringify({ ...order, fence, emptied: row.cartId })}\n`);
    if (!this.#firstOf.has(order.paymentId)) this.#firstOf.set(order.paymentId, order);
    return order;
  }

  #check(paymentId: string, fence: Fence): void {
    if (fence === undefined) return;
    const seen = this.#highestFenceOf.get(paymentId) ?? fence;
    if (fence < seen) throw new StaleFenceError(paymentId, fence, seen);
    this.#highestFenceOf.set(paymentId, fence);
  }
}

/** Reads the orders back from a table's file, in the order they were written. */
export function readOrders(file: string): Order[] {
  const lines = readFileSync(file, "utf8").trimEnd().split("\n");
  return lines.filter((line) => line !== "").map((line) => JSON.parse(line) as Order);
}

/** Lets other processes use a table, over loopback. */
export async function serveOrderTable(table: OrderTable): Promise<Service> {
  return await serveJson(({ route, body }) => {
    try {
      if (route === "POST /find") {
        const { paymentId, fence } = body as { paymentId: string; fence?: number };
        return { status: 200, body: table.find(paymentId, fence) };
      }
      const { row, fence } = body as { row: Omit<Order, "orderId">; fence?: number };
      return { status: 200, body: table.insert(row, fence) };
    } catch (error) {
      if (error instanceof StaleFenceError) return { status: 409, body: { error: error.message } };
      throw error;
    }
  });
}

/** The database is gone or refuses, as a copy sees it. After `insert` the order may have been written. */
export class OrderTableError extends Error {
  constructor(message: string) {
    super(message);
    this.name = "OrderTableError";
  }
}

/**
 * The table as a copy of the service reaches it: the same two steps, over the network.
 *
 * @throws OrderTableError  from either step: the token is stale, or the table failed
 */
export class OrderTableClient {
  readonly #url: string;
  readonly #from: string;

  /** @param from  name of the copy that asks */
  constructor(url: string, from: string) {
    this.#url = url;
    this.#from = from;
  }

  /** As `OrderTable.find`. */
  async find(paymentId: string, fence: Fence): Promise<Order | null> {
    return (await this.#ask("find", { paymentId, fence })) as Order | null;
  }

  /** As `OrderTable.insert`. */
  async insert(row: Omit<Order, "orderId">, fence: Fence): Promise<Order> {
    return (await this.#ask("insert", { row, fence })) as Order;
  }

  async #ask(step: "find" | "insert", body: unknown): Promise<unknown> {
    const answer = await postJson(`${this.#url}/${step}`, body, { from: this.#from });
    if (answer.status !== 200) throw new OrderTableError((answer.body as { error: string }).error);
    return answer.body;
  }
}

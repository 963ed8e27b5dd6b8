/**
 * The shop's database: one table of orders, stored as a file with one JSON line per order, so that people can read it.
 *
 * It intentionally has no unique index on the payment, so only the record of the request prevents duplicates. But it
 * has a fence: it refuses a token that is lower than one it has seen for the payment. An attempt that sleeps past the
 * end of its lease and then writes has a lower token than the next attempt. A `find` counts too: after it, earlier
 * attempts can no longer write.
 */
import { appendFileSync, readFileSync, writeFileSync } from "node:fs";
import { postJson, type Service, serveJson } from "./loopback-http.js";
import type { Payment } from "./submissions.js";

/** A row of the table. */
export interface Order extends Payment {
  readonly orderId: string;
  readonly receipt: string;
  /** The name of the copy that wrote it. */
  readonly writtenBy: string;
}

/** The fencing token of the caller; undefined for no check. */
export type Fence = number | undefined;

/** The table has seen a higher token. Nothing was written, and the caller must stop. */
export class StaleFenceError extends Error {
  constructor(paymentId: string, fence: number, seen: number) {
    super(`the order table refuses token ${fence} for ${paymentId}: it has seen token ${seen}`);
    this.name = "StaleFenceError";
  }
}

/** The table. Each method is atomic, like a statement of a database. */
export class OrderTable {
  readonly #file: string;
  readonly #firstOf = new Map<string, Order>();
  readonly #highestFenceOf = new Map<string, number>();
  #lastOrder = 0;

  /** Creates an empty table in `file`, which is overwritten. */
  constructor(file: string) {
    this.#file = file;
    writeFileSync(file, "");
  }

  /**
   * Returns the first order of a payment, or null.
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

/** Reads the orders from a table's file, in the order in which they were written. */
export function readOrders(file: string): Order[] {
  const lines = readFileSync(file, "utf8").trimEnd().split("\n");
  return lines.filter((line) => line !== "").map((line) => JSON.parse(line) as Order);
}

/** Serves a table to other processes, over loopback. */
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

/** The database failed or refused a request. After an `insert`, the order may have been written. */
export class OrderTableError extends Error {
  constructor(message: string) {
    super(message);
    this.name = "OrderTableError";
  }
}

/**
 * The client of the table that a copy of the service uses: the same two methods, over the network.
 *
 * @throws OrderTableError  from both methods: the token is stale, or the table failed
 */
export class OrderTableClient {
  readonly #url: string;
  readonly #from: string;

  /** @param from  name of the copy */
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

/**
 * The order service, one copy of it: `POST /payments` charges the payment, writes the order, empties the cart.
 *
 * Start reading at `pay`. The customer may refresh the waiting page, and each refresh may reach another copy, so
 * several copies can be at work on one payment. Each looks first whether the payment already has its order. Only
 * under the lock is that answer still true a moment later, when the order is written.
 */
import { AcquireTimeoutError, ClosedError, type Holdfast, type Lease, LeaseLostError, StoreError } from "holdfast";
import { type JsonAnswer, type JsonRequest, type Service, serveJson } from "./loopback-http.js";
import { type Order, OrderTableClient, OrderTableError } from "./order-table.js";
import { charge } from "./payment-gateway.js";
import type { Payment } from "./submissions.js";

/** What one copy needs to do its work. */
export interface CopyOptions {
  /** E.g. `copy 2`: who wrote an order, and who asked the gateway. */
  readonly name: string;
  readonly gatewayUrl: string;
  readonly tableUrl: string;
  /** Undefined: work without the lock. */
  readonly holdfast: Holdfast | undefined;
}

/** What the customer gets to see. A refresh must get the same as the first press. */
export interface Confirmation {
  readonly orderId: string;
  readonly receipt: string;
}

/** How long a customer waits for an earlier press of the same button, before being told to try again. */
const WAIT_MS = 8_000;

/**
 * How long a payment stays blocked after its copy was killed. A copy that lives renews its lease as long as it
 * works, so this need not cover a slow gateway, only a pause of the process that is still normal.
 */
const LEASE_MS = 3_000;

/** Starts one copy on a free port of loopback. Closing it leaves its Holdfast open. */
export async function startOrderService(options: CopyOptions): Promise<Service> {
  const { name, gatewayUrl, holdfast } = options;
  const table = new OrderTableClient(options.tableUrl, name);

  async function pay(payment: Payment): Promise<Confirmation> {
    if (holdfast === undefined) return await settle(payment, undefined);
    return await holdfast
      .mutex(`payment:${payment.paymentId}`)
      .run((lease) => settle(payment, lease), { waitMs: WAIT_MS, leaseMs: LEASE_MS, label: payment.cartId });
  }

  async function settle(payment: Payment, lease: Lease | undefined): Promise<Confirmation> {
    const earlier = await table.find(payment.paymentId, lease?.token);
    if (earlier !== null) return confirm(earlier);

    // The signal stops the request when the lease is lost. Whether money moved is then unknown, and does not matter:
    // the payment's id is the gateway's idempotency key, so whoever comes next gets the same charge.
    const receipt = await charge(gatewayUrl, payment, { from: name, signal: lease?.signal });

    // The lease could end between this line and the write. assertHeld cannot see that; the token can, at the table.
    lease?.assertHeld();
    return confirm(await table.insert({ ...payment, receipt, writtenBy: name }, lease?.token));
  }

  return await serveJson(async (request) => {
    const payment = paymentOf(request);
    if (typeof payment === "string") return { status: 400, body: { error: payment } };
    try {
      return { status: 200, body: await pay(payment) };
    } catch (error) {
      return apology(error, payment, name);
    }
  });
}

function confirm(order: Order): Confirmation {
  return { orderId: order.orderId, receipt: order.receipt };
}

/** What a failure means for the customer. After every one of them it is safe to submit the same payment again. */
function apology(error: unknown, payment: Payment, name: string): JsonAnswer {
  const reason = error instanceof Error ? error.message : String(error);
  // Busy, or Redis is in trouble, or this copy is shutting down: nothing is wrong with the payment.
  if (error instanceof AcquireTimeoutError || error instanceof StoreError || error instanceof ClosedError) {
    return { status: 503, body: { error: reason }, retryAfterSeconds: 1 };
  }
  // Somebody else may have been at work on this payment at the same time: the fence has done its duty, but a
  // person should know that it was needed.
  if (error instanceof LeaseLostError || error instanceof OrderTableError) {
    console.error(`!! ${name}: ${payment.paymentId} was not finished: ${reason}`);
    return { status: 500, body: { error: reason } };
  }
  return { status: 502, body: { error: `gateway or database out of reach: ${reason}` }, retryAfterSeconds: 1 };
}

/** The payment in a request, or a sentence on what is wrong with it. */
function paymentOf({ route, body }: JsonRequest): Payment | string {
  if (route !== "POST /payments") return `expected POST /payments, got ${route}`;
  if (typeof body !== "object" || body === null) return "expected an object";
  const { paymentId, customer, cartId, amountCents } = body as Partial<Record<keyof Payment, unknown>>;
  if (!isName(paymentId)) return "paymentId must be a text of 1 to 64 characters";
  if (!isName(customer)) return "customer must be a text of 1 to 64 characters";
  if (!isName(cartId)) return "cartId must be a text of 1 to 64 characters";
  if (!Number.isSafeInteger(amountCents) || Number(amountCents) < 1)
    return "amountCents must be a whole number above 0";
  return { paymentId, customer, cartId, amountCents: Number(amountCents) };
}

function isName(value: unknown): value is string {
  return typeof value === "string" && value.length >= 1 && value.length <= 64;
}

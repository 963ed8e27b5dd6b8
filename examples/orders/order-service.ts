/**
 * The order service, one copy of it: `POST /payments` charges the payment, writes the order, empties the cart.
 *
 * Start reading at `app.post`. The customer may refresh the waiting page, and each refresh may reach another copy. All of them carry the
 * same Idempotency-Key, so one is carried out, and the others get its answer: the first result, as it was recorded.
 */

import { idempotency, leaseOf } from "@holdfast/http/express";
import express, { type ErrorRequestHandler, type RequestHandler } from "express";
import { type Holdfast, type Lease, LeaseLostError } from "holdfast";
import { type Service, serve } from "./loopback-http.js";
import { type Order, OrderTableClient, OrderTableError } from "./order-table.js";
import { charge } from "./payment-gateway.js";
import type { Payment } from "./submissions.js";

/** What one copy needs to do its work. */
export interface CopyOptions {
  /** E.g. `copy 2`: who wrote an order, and who asked the gateway. */
  readonly name: string;
  readonly gatewayUrl: string;
  readonly tableUrl: string;
  /** Undefined: the Idempotency-Key is not heeded. */
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
  const heedsKey: RequestHandler[] =
    holdfast === undefined
      ? []
      : [idempotency(holdfast, { required: true, leaseMs: LEASE_MS, whenRunning: { waitMs: WAIT_MS } })];

  const app = express();
  app.post("/payments", express.json(), refuseWrongPayments, ...heedsKey, (request, response, next) => {
    settle(request.body as Payment, leaseOf(request)).then((confirmation) => void response.json(confirmation), next);
  });
  app.use(apologize(name));
  return await serve(app);

  async function settle(payment: Payment, lease: Lease | undefined): Promise<Confirmation> {
    // With the key this is not for refreshes, but for the attempt that follows a copy which died after it had written the order.
    const earlier = await table.find(payment.paymentId, lease?.token);
    if (earlier !== null) return confirm(earlier);

    // The signal stops the request when the lease is lost. Whether money moved is then unknown, and does not matter:
    // the payment's id is the gateway's idempotency key, so whoever comes next gets the same charge.
    const receipt = await charge(gatewayUrl, payment, { from: name, signal: lease?.signal });

    // The lease could end between this line and the write. assertHeld cannot see that; the token can, at the table.
    lease?.assertHeld();
    return confirm(await table.insert({ ...payment, receipt, writtenBy: name }, lease?.token));
  }
}

function confirm(order: Order): Confirmation {
  return { orderId: order.orderId, receipt: order.receipt };
}

/** What a failure means for the customer. No answer of 5xx is recorded: it is safe to submit the same payment again. */
function apologize(name: string): ErrorRequestHandler {
  return (error: unknown, request, response, _next) => {
    const reason = error instanceof Error ? error.message : String(error);
    const isFenced = error instanceof LeaseLostError || error instanceof OrderTableError;
    // Somebody else may have been at work on this payment at the same time: the fence has done its duty, but a
    // person should know that it was needed.
    if (isFenced) console.error(`!! ${name}: ${(request.body as Payment).paymentId} was not finished: ${reason}`);
    if (isFenced) response.status(500).json({ error: reason });
    else if (isBadRequest(error)) response.status(400).json({ error: `the body is not JSON: ${reason}` });
    else
      response
        .status(502)
        .set("retry-after", "1")
        .json({ error: `gateway or database out of reach: ${reason}` });
  };
}

function isBadRequest(error: unknown): boolean {
  return error instanceof SyntaxError && "status" in error && error.status === 400;
}

/** Before the key is looked at: what is no payment begins nothing. */
const refuseWrongPayments: RequestHandler = (request, response, next) => {
  const problem = problemOf(request.body);
  if (problem === undefined) next();
  else response.status(400).json({ error: problem });
};

/** A sentence on what is wrong with a payment; undefined if nothing is. */
function problemOf(body: unknown): string | undefined {
  if (typeof body !== "object" || body === null) return "expected an object";
  const { paymentId, customer, cartId, amountCents } = body as Partial<Record<keyof Payment, unknown>>;
  if (!isName(paymentId)) return "paymentId must be a text of 1 to 64 characters";
  if (!isName(customer)) return "customer must be a text of 1 to 64 characters";
  if (!isName(cartId)) return "cartId must be a text of 1 to 64 characters";
  if (!Number.isSafeInteger(amountCents) || Number(amountCents) < 1) {
    return "amountCents must be a whole number above 0";
  }
  return undefined;
}

function isName(value: unknown): value is string {
  return typeof value === "string" && value.length >= 1 && value.length <= 64;
}

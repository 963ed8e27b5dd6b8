/**
 * One copy of the order service: `POST /payments` charges the payment, writes the order, and empties the cart.
 *
 * Start reading at `app.post`. The customer may refresh the waiting page, and each refresh may reach a different copy.
 * All of them have the same Idempotency-Key, so only one is executed, and the others get its recorded response.
 */

import { idempotency, leaseOf } from "@holdfast/http/express";
import express, { type ErrorRequestHandler, type RequestHandler } from "express";
import { type Holdfast, type Lease, LeaseLostError } from "holdfast";
import { type Service, serve } from "./loopback-http.js";
import { type Order, OrderTableClient, OrderTableError } from "./order-table.js";
import { charge } from "./payment-gateway.js";
import type { Payment } from "./submissions.js";

/** The settings of one copy. */
export interface CopyOptions {
  /** The name of the copy, such as `copy 2`. Recorded in its orders and sent to the gateway. */
  readonly name: string;
  readonly gatewayUrl: string;
  readonly tableUrl: string;
  /** Undefined: the Idempotency-Key is ignored. */
  readonly holdfast: Holdfast | undefined;
}

/** The response to the customer. A refresh must get the same as the first press. */
export interface Confirmation {
  readonly orderId: string;
  readonly receipt: string;
}

/** How long a request waits for an earlier press of the same button before it gets "try again". */
const WAIT_MS = 8_000;

/**
 * How long a payment stays blocked after its copy was killed. A live copy renews its lease while it works, so this need
 * not cover a slow gateway, only a normal pause of the process.
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
    // With the key, this is not for refreshes, but for the attempt after a copy that died when it had written the
    // order.
    const earlier = await table.find(payment.paymentId, lease?.token);
    if (earlier !== null) return confirm(earlier);

    // The signal stops the request when the lease is lost. It is then unknown whether money moved, but this does not
    // matter: the payment's id is the gateway's idempotency key, so the next attempt gets the same charge.
    const receipt = await charge(gatewayUrl, payment, { from: name, signal: lease?.signal });

    // The lease could end between this line and the write. assertHeld cannot detect that, but the table can, by the
    // token.
    lease?.assertHeld();
    return confirm(await table.insert({ ...payment, receipt, writtenBy: name }, lease?.token));
  }
}

function confirm(order: Order): Confirmation {
  return { orderId: order.orderId, receipt: order.receipt };
}

/** The response after a failure. 5xx responses are not recorded, so it is safe to submit the same payment again. */
function apologize(name: string): ErrorRequestHandler {
  return (error: unknown, request, response, _next) => {
    const reason = error instanceof Error ? error.message : String(error);
    const isFenced = error instanceof LeaseLostError || error instanceof OrderTableError;
    // Another copy may have worked on this payment at the same time. The fence prevented harm, but an operator should
    // know that it was needed.
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

/** Refuses invalid payments before the key is used. */
const refuseWrongPayments: RequestHandler = (request, response, next) => {
  const problem = problemOf(request.body);
  if (problem === undefined) next();
  else response.status(400).json({ error: problem });
};

/** A sentence that says what is wrong with a payment; undefined if it is valid. */
function problemOf(body: unknown): string | undefined {
  if (typeof body !== "object" || body === null) return "expected an object";
  const { paymentId, customer, cartId, amountCents } = body as Partial<Record<keyof Payment, unknown>>;
  if (!isName(paymentId)) return "paymentId must be a string of 1 to 64 characters";
  if (!isName(customer)) return "customer must be a string of 1 to 64 characters";
  if (!isName(cartId)) return "cartId must be a string of 1 to 64 characters";
  if (!Number.isSafeInteger(amountCents) || Number(amountCents) < 1) {
    return "amountCents must be a whole number above 0";
  }
  return undefined;
}

function isName(value: unknown): value is string {
  return typeof value === "string" && value.length >= 1 && value.length <= 64;
}

/**
 * The payment company: somebody else's service, slow, and sometimes twice as slow.
 *
 * Like real ones it takes an idempotency key: requests with one key are one charge, and all get its receipt. That
 * is what makes it safe to ask again after a crash, when nobody knows whether the first request was carried out.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { postJson, type Service, serveJson } from "./loopback-http.js";
import { integerBetween, seededRandom, seedOf } from "./random.js";
import type { Payment } from "./submissions.js";

/** The gateway with its own books, which the demo reads at the end. */
export interface PaymentGateway extends Service {
  /** Charges made: money that moved. */
  readonly charges: number;
  /** Requests received, repeated ones included. */
  readonly requests: number;
}

/** Told after money has moved and before the answer is sent; the answer waits for it. */
export type ChargeListener = (charge: { paymentId: string; number: number; askedBy: string }) => Promise<void>;

/** Starts a gateway on loopback. */
export async function startPaymentGateway(onCharge: ChargeListener): Promise<PaymentGateway> {
  const receipts = new Map<string, Promise<string>>();
  let charges = 0;
  let requests = 0;

  async function makeCharge(paymentId: string, askedBy: string): Promise<string> {
    await sleep(delayOf(paymentId));
    charges += 1;
    const receipt = `receipt-${String(charges).padStart(4, "0")}`;
    await onCharge({ paymentId, number: charges, askedBy });
    return receipt;
  }

  const service = await serveJson(async ({ body, from }) => {
    const { idempotencyKey } = body as ChargeRequest;
    requests += 1;
    const receipt = receipts.get(idempotencyKey) ?? makeCharge(idempotencyKey, from);
    receipts.set(idempotencyKey, receipt);
    return { status: 200, body: { receipt: await receipt } };
  });

  return {
    ...service,
    get charges() {
      return charges;
    },
    get requests() {
      return requests;
    },
  };
}

/** 30 to 60 ms, one time in four twice that; always the same for one payment. */
function delayOf(paymentId: string): number {
  const random = seededRandom(seedOf(paymentId));
  const delayMs = integerBetween(random, 30, 60);
  return random() < 0.25 ? 2 * delayMs : delayMs;
}

interface ChargeRequest {
  readonly idempotencyKey: string;
  readonly amountCents: number;
}

/**
 * Asks the gateway for the money, as the order service does.
 *
 * @returns the receipt; the same one for every request with this payment's id
 * @throws the signal's reason, TypeError  the outcome is unknown; ask again with the same payment
 */
export async function charge(
  gatewayUrl: string,
  payment: Payment,
  options: { readonly from: string; readonly signal: AbortSignal | undefined },
): Promise<string> {
  const request: ChargeRequest = { idempotencyKey: payment.paymentId, amountCents: payment.amountCents };
  const answer = await postJson(`${gatewayUrl}/charges`, request, options);
  return (answer.body as { receipt: string }).receipt;
}

/**
 * The external payment company: slow, and sometimes twice as slow.
 *
 * Like real ones, it accepts an idempotency key: all requests with the same key are one charge and get its receipt. So
 * it is safe to repeat a request after a crash, when it is unknown whether the first request was executed.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { postJson, type Service, serveJson } from "./loopback-http.js";
import { integerBetween, seededRandom, seedOf } from "./random.js";
import type { Payment } from "./submissions.js";

/** The gateway with its counters, which the demo reads at the end. */
export interface PaymentGateway extends Service {
  /** The number of charges. */
  readonly charges: number;
  /** The number of requests, including repeated ones. */
  readonly requests: number;
}

/** Called after a charge and before its response is sent. The response waits for it. */
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

/** 30 to 60 ms, for one payment in four twice as long; always the same for the same payment. */
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
 * Requests a charge from the gateway. Used by the order service.
 *
 * @returns the receipt; the same one for every request with this payment's id
 * @throws the signal's reason, TypeError  the outcome is unknown; repeat the request with the same payment
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

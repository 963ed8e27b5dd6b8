/**
 * One run of the load: starts the gateway, the table and the copies, sends the submissions, and counts the results.
 *
 * The counts do not rely on the copies: orders are read from the file of the order table, charges from the counters of
 * the gateway, and each customer's confirmation is compared with the first order of the payment.
 */
import type { StartCopies } from "./copies.js";
import { type Answered, submitAll } from "./load.js";
import { type Order, OrderTable, readOrders, serveOrderTable } from "./order-table.js";
import { type ChargeListener, startPaymentGateway } from "./payment-gateway.js";
import type { Submission } from "./submissions.js";

/** The settings of a run. */
export interface LoadRun {
  readonly submissions: readonly Submission[];
  readonly withKey: boolean;
  readonly startCopies: StartCopies;
  /** File of the order table; overwritten. */
  readonly ordersFile: string;
  /** Called after each response with the number of responses so far. */
  readonly onProgress: (answered: number) => void;
}

/** The result of a run. */
export interface LoadResult {
  readonly payments: number;
  readonly submissions: number;
  readonly orders: number;
  /** The number of orders that are not the first of their payment. */
  readonly duplicateOrders: number;
  /** The number of submissions that did not get the first order and receipt of their payment, or got no response. */
  readonly otherResults: number;
  /** The number of charges of the gateway, and of requests for them. */
  readonly charges: number;
  readonly chargeRequests: number;
  /** The number of submissions that got the recorded response to an earlier press. */
  readonly replays: number;
  /** How often a customer had to press again. */
  readonly pressedAgain: number;
  /** All orders of the payment with the most orders. */
  readonly worst: readonly Order[];
  /** The killed copy, and how the payment that it had just charged continued; null if none was killed. */
  readonly killed: KilledCopy | null;
  readonly tookMs: number;
}

/** A copy that was killed between the charge and the order. */
export interface KilledCopy {
  readonly name: string;
  readonly paymentId: string;
  /** The copy that finally wrote the order of that payment. */
  readonly finishedBy: string | undefined;
}

/** Runs the load once. Closes everything that it started before it settles. */
export async function runLoad(run: LoadRun): Promise<LoadResult> {
  const payments = new Set(run.submissions.map((submission) => submission.paymentId)).size;
  let killed: { name: string; paymentId: string } | null = null;
  let onCharge: ChargeListener = async () => {};

  const gateway = await startPaymentGateway((charge) => onCharge(charge));
  const table = await serveOrderTable(new OrderTable(run.ordersFile));
  try {
    const { withKey } = run;
    const copies = await run.startCopies({ gatewayUrl: gateway.url, tableUrl: table.url, withKey });
    // After half of the charges, kill one copy at the worst moment: the charge is made, but no order is written.
    onCharge = async ({ number, askedBy, paymentId }) => {
      if (copies.kill === undefined || copies.urls.length < 2 || number !== Math.ceil(payments / 2)) return;
      killed = { name: askedBy, paymentId };
      await copies.kill(askedBy);
    };
    try {
      const startedAtMs = performance.now();
      let answered = 0;
      const answers = await submitAll(run.submissions, copies.urls, () => {
        answered += 1;
        run.onProgress(answered);
      });
      return {
        payments,
        ...count(answers, readOrders(run.ordersFile), killed),
        charges: gateway.charges,
        chargeRequests: gateway.requests,
        tookMs: performance.now() - startedAtMs,
      };
    } finally {
      await copies.close();
    }
  } finally {
    await table.close();
    await gateway.close();
  }
}

type Counted = Omit<LoadResult, "payments" | "charges" | "chargeRequests" | "tookMs">;

function count(
  answers: readonly Answered[],
  orders: readonly Order[],
  killed: { name: string; paymentId: string } | null,
): Counted {
  const ordersOf = new Map<string, Order[]>();
  for (const order of orders) {
    const sofar = ordersOf.get(order.paymentId) ?? [];
    ordersOf.set(order.paymentId, [...sofar, order]);
  }
  const firstOf = (paymentId: string): Order | undefined => ordersOf.get(paymentId)?.[0];
  const isFirst = ({ submission, confirmation }: Answered): boolean => {
    const first = firstOf(submission.paymentId);
    return first !== undefined && confirmation?.orderId === first.orderId && confirmation.receipt === first.receipt;
  };
  return {
    submissions: answers.length,
    orders: orders.length,
    duplicateOrders: orders.length - ordersOf.size,
    otherResults: answers.filter((answer) => !isFirst(answer)).length,
    replays: answers.filter(({ isReplay }) => isReplay).length,
    pressedAgain: answers.reduce((sum, answer) => sum + answer.again, 0),
    worst: [...ordersOf.values()].reduce((worst, some) => (some.length > worst.length ? some : worst), []),
    killed: killed && { ...killed, finishedBy: firstOf(killed.paymentId)?.writtenBy },
  };
}

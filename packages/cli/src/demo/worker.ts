/** One worker of the demo. It receives presses, settles each payment once, and also campaigns in an election. */
import type { Holdfast } from "holdfast";
import { failureOf } from "../frame/failures.js";
import type { Shop } from "./shop.js";

/** The number of charges that the gateway accepts at the same time. */
export const GATEWAY_PERMITS = 2;
/** Short, so that a killed worker is visibly replaced during the demo. */
export const LEASE_MS = 3_000;

/** An event that a worker reports. */
export type WorkerEvent =
  | { readonly event: "leading"; readonly term: number }
  | { readonly event: "settling"; readonly payment: string }
  | { readonly event: "settled"; readonly payment: string; readonly waitedMs: number };

/** A running worker. */
export interface Worker {
  /** Handles a customer's press: settles the payment, or finds that it is already settled. */
  press(payment: string): void;
  /** Releases what the worker holds, and ends it. */
  close(): Promise<void>;
}

const PULL_EVERY_MS = 250;

/**
 * Starts a worker.
 *
 * @param holdfast  undefined to work without locks
 * @param report  called with each event when it happens
 */
export function startWorker(holdfast: Holdfast | undefined, shop: Shop, report: (event: WorkerEvent) => void): Worker {
  const ending = new AbortController();
  const under = new Set<Promise<void>>();
  const track = (work: Promise<void>): void => {
    const quiet = work.catch(rethrowUnlessAway).finally(() => under.delete(quiet));
    under.add(quiet);
  };
  if (holdfast !== undefined) track(leadFeed(holdfast, shop, ending.signal, report));
  return {
    press(payment) {
      track(holdfast === undefined ? settle(shop, payment, undefined) : settleLocked(holdfast, shop, payment, report));
    },
    async close() {
      ending.abort();
      await Promise.all(under);
    },
  };
}

/** Settles a payment in the same way with and without a lock: check for an order, charge, write the order. */
async function settle(shop: Shop, payment: string, token: number | undefined): Promise<void> {
  if (await shop.hasOrder(payment)) return;
  await shop.charge(payment);
  await shop.writeOrder(payment, token);
}

async function settleLocked(
  holdfast: Holdfast,
  shop: Shop,
  payment: string,
  report: (event: WorkerEvent) => void,
): Promise<void> {
  const beganMs = performance.now();
  const options = { waitMs: 30_000, leaseMs: LEASE_MS, label: "settles" };
  await holdfast.mutex(payment).run(async ({ token }) => {
    if (await shop.hasOrder(payment)) return;
    report({ event: "settling", payment });
    const gateway = holdfast.semaphore("gateway", { permits: GATEWAY_PERMITS });
    await gateway.run(() => shop.charge(payment), { ...options, label: payment });
    await shop.writeOrder(payment, token);
    report({ event: "settled", payment, waitedMs: performance.now() - beganMs });
  }, options);
}

async function leadFeed(
  holdfast: Holdfast,
  shop: Shop,
  ending: AbortSignal,
  report: (event: WorkerEvent) => void,
): Promise<void> {
  while (!ending.aborted) {
    try {
      const leadership = await holdfast.election("feed").campaign(`worker ${process.pid}`, {
        waitMs: Infinity,
        leaseMs: LEASE_MS,
        signal: ending,
        label: "pulls the feed",
      });
      report({ event: "leading", term: leadership.term });
      while (!ending.aborted && leadership.validForMs() > 0 && (await shop.pullFeed(leadership.term))) {
        await new Promise((resolve) => setTimeout(resolve, PULL_EVERY_MS));
      }
      await leadership.release();
    } catch (error) {
      if (ending.aborted) return;
      rethrowUnlessAway(error);
    }
  }
}

/** Ignores an unreachable Redis, a lost lease and a wait that timed out, because they are expected in the demo. */
function rethrowUnlessAway(error: unknown): void {
  if (failureOf(error).code === 125) throw error;
}

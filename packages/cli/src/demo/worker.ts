/** One worker of the demo: takes presses, settles each payment once, and stands for election beside that. */
import type { Holdfast } from "holdfast";
import { failureOf } from "../frame/failures.js";
import type { Shop } from "./shop.js";

/** How many charges the gateway wants at a time. */
export const GATEWAY_PERMITS = 2;
/** Short, so that a killed worker is seen to be replaced within the demo. */
export const LEASE_MS = 3_000;

/** An event of a worker. */
export type WorkerEvent =
  | { readonly event: "leading"; readonly term: number }
  | { readonly event: "settling"; readonly payment: string }
  | { readonly event: "settled"; readonly payment: string; readonly waitedMs: number };

/** A worker that runs. */
export interface Worker {
  /** A customer's press. Settles it, or finds that it is settled. */
  press(payment: string): void;
  /** Gives back what it holds and ends. */
  close(): Promise<void>;
}

const PULL_EVERY_MS = 250;

/**
 * Puts a worker to work.
 *
 * @param holdfast  undefined: without any lock
 * @param report      called with what happens, as it happens
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

/** The work itself, the same with and without a lock: look, charge, write. */
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

/** A Redis that is away for a moment, a lease that was lost and a wait that was too long are part of the story. */
function rethrowUnlessAway(error: unknown): void {
  if (failureOf(error).code === 125) throw error;
}

/** Tracks the queues as callers see them, for the history, and checks X3 during the run. */
import type { Attempt } from "./attempt.js";
import { isOfCrowd } from "./crowds.js";
import type { Network } from "./messages.js";
import type { Call } from "./network.js";
import { CrowdOrder, FifoOrder, type Queued } from "./order.js";
import { labelIn } from "./owners.js";
import type { SimulatedProcess } from "./process.js";
import type { Recorder } from "./recorder.js";
import { type Beginning, SharedClaims } from "./shared-claims.js";

/** What it needs from the judge. */
interface Bench {
  readonly network: Network;
  readonly recorder: Recorder;
  violated(property: string, text: string): void;
  decided(property: string): void;
}

/** Tracks queues. */
export class QueueWatch {
  readonly shared: SharedClaims;
  readonly #bench: Bench;
  readonly #now: () => number;
  readonly #order = new FifoOrder();
  readonly #crowds = new CrowdOrder();

  constructor(now: () => number, bench: Bench) {
    this.#now = now;
    this.#bench = bench;
    this.shared = new SharedClaims(
      (property, text) => bench.violated(property, text),
      (property) => bench.decided(property),
    );
  }

  /** Records a call. For a crowd, the claims are in the queue, and their callers have a separate order. */
  called(attempt: Attempt): void {
    if (attempt.session.crowd === undefined && attempt.session.way !== "steal") this.#order.called(attempt);
  }

  /** Records that a process sends a request. */
  sent(process: SimulatedProcess, call: Call): void {
    const claim = this.shared.sent(process, call, this.#now());
    if (claim !== undefined) this.#order.called(claim.queued);
  }

  /** Records that a call ended without a grant. */
  gaveUp(attempt: Attempt): void {
    this.#order.gaveUp(attempt);
  }

  /** Records that a call ended with a lease. @returns the number of earlier leases of its claim */
  granted(attempt: Attempt, lease: Beginning, tokenOfCall: number): number {
    const turn = this.shared.began(lease);
    if (attempt.session.crowd !== undefined)
      for (const passed of this.#crowds.granted(attempt)) this.#bench.violated("X3", passed);
    const queued: Queued | undefined =
      attempt.session.crowd === undefined ? attempt : this.shared.all.get(lease.owner)?.queued;
    // A steal does not wait, and may overtake everyone.
    if (attempt.session.way === "steal") return turn;
    if (attempt.lockName !== lease.lockName || queued === undefined || turn > 0) return turn;
    for (const passed of this.#order.granted(queued, tokenOfCall, this.#bench.network))
      this.#bench.violated("X3", passed);
    return turn;
  }

  /** Records that a request of this owner is queued and its process knows. @returns whether the owner is known */
  enqueued(owner: string): boolean {
    const { recorder } = this.#bench;
    const claim = this.shared.all.get(owner);
    if (claim !== undefined) {
      claim.enqueuedMs = Math.min(claim.enqueuedMs, this.#now());
      this.#order.enqueued(claim.queued.session.id, this.#now());
      return true;
    }
    const label = labelIn(owner);
    const session = /^s(\d+)$/.exec(label)?.[1];
    if (session === undefined) return isOfCrowd(label);
    const operation = this.#order.enqueued(Number(session), this.#now())?.operation;
    // A caller of several locks queues for one after another.
    if (operation === undefined || operation.lockName.includes(",")) return true;
    const { lockName, id: operationId } = operation;
    recorder.add({ type: "enqueued", atMs: this.#now(), lockName, operationId });
    return true;
  }

  /** The process may have missed messages, so its waiters may be overtaken. */
  deafened(process: SimulatedProcess): void {
    this.#excuse((waiter) => waiter.process === process);
  }

  /** The server has removed the claims of that process from a queue and told it; it queues again behind others. */
  lostPlaces(process: SimulatedProcess, lockName: string): void {
    this.#excuse((waiter) => waiter.process === process && waiter.lockName === lockName);
  }

  /** Records that a request was executed. */
  ran({ script, keys, args }: Call): void {
    if (script.name !== "permits/resize") return;
    const size = Number(args[script.args.indexOf("size")]);
    // A claim for more permits than exist is rejected. If the number grows again, it queues behind the claims that stayed.
    this.#excuse(
      ({ lockName, operation }) => keys[0]?.includes(`{${lockName}}`) === true && (operation?.args.permits ?? 1) > size,
    );
  }

  #excuse(isMeant: (waiter: Queued) => boolean): void {
    for (const queued of this.#order.excuse(isMeant)) {
      this.shared.missed(queued, this.#now());
      if (queued.operation === undefined) continue;
      const { lockName, id: operationId } = queued.operation;
      this.#bench.recorder.add({ type: "missed", atMs: this.#now(), lockName, operationId });
    }
  }
}

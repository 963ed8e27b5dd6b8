/**
 * X3: a caller that knew that it was queued before another one called is granted before it.
 *
 * Tokens give the order of grants, because the server issues both in one step. Waiters are excused if they may have
 * missed a message or a heartbeat, if they gave up, or if they wanted more permits than existed for a while. Callers
 * of one process that share claims are ordered without the server, so they are never excused.
 */
import type { Attempt } from "./attempt.js";
import type { Network } from "./messages.js";

/** An entry in the queue: one caller, or a claim that several callers share. */
export type Queued = Pick<Attempt, "process" | "lockName" | "callMs" | "operation"> & {
  readonly session: Pick<Attempt["session"], "id">;
};

interface Waiter {
  readonly attempt: Queued;
  enqueuedMs: number;
  isExcused: boolean;
}

/** Checks the order of grants. */
export class FifoOrder {
  readonly #waiters = new Map<number, Waiter>();
  readonly #granted: { readonly attempt: Queued; readonly token: number }[] = [];

  called(attempt: Queued): void {
    this.#waiters.set(attempt.session.id, { attempt, enqueuedMs: Infinity, isExcused: false });
  }

  /** Records that a process learned that it is queued. @returns the entry, the first time */
  enqueued(session: number, atMs: number): Queued | undefined {
    const waiter = this.#waiters.get(session);
    if (waiter === undefined || waiter.enqueuedMs <= atMs) return undefined;
    waiter.enqueuedMs = atMs;
    return waiter.attempt;
  }

  gaveUp({ session }: Queued): void {
    this.#waiters.delete(session.id);
  }

  /**
   * Excuses waiters that the server may have removed from the queue, or that may have missed their grants.
   *
   * @returns the waiters that were not excused before
   */
  excuse(isMeant: (waiter: Queued) => boolean): Queued[] {
    const excused = [...this.#waiters.values()].filter(({ attempt, isExcused }) => !isExcused && isMeant(attempt));
    for (const waiter of excused) waiter.isExcused = true;
    return excused.map(({ attempt }) => attempt);
  }

  /** @returns descriptions of callers that came later and were granted earlier */
  granted(attempt: Queued, token: number, network: Network): string[] {
    const waiter = this.#waiters.get(attempt.session.id);
    this.#waiters.delete(attempt.session.id);
    this.#granted.push({ attempt, token });
    if (waiter === undefined || waiter.isExcused || !network.isOrderly) return [];
    return this.#granted
      .filter(
        (other) =>
          other.attempt !== attempt &&
          other.attempt.lockName === attempt.lockName &&
          other.token < token &&
          other.attempt.callMs > waiter.enqueuedMs,
      )
      .map(
        (other) =>
          `${attempt.process.name} waited for ${attempt.lockName} when ${other.attempt.process.name} called, but was granted after it`,
      );
  }
}

/** X3 among the callers of a crowd, whatever claims serve them. */
export class CrowdOrder {
  readonly #granted: Attempt[] = [];

  /** @returns descriptions of callers that called later and were granted earlier */
  granted(attempt: Attempt): string[] {
    const { process, session, lockName, callMs } = attempt;
    // Later operations of a session, such as waiting for a condition, use another queue, and a single attempt uses
    // none.
    if (session.isTry || this.#granted.some((other) => other.session === session)) return [];
    const passed = this.#granted.filter(
      (other) =>
        other.process === process &&
        other.session.crowd === session.crowd &&
        other.lockName === lockName &&
        other.callMs > callMs,
    );
    this.#granted.push(attempt);
    return passed.map(
      (other) =>
        `${process.name} called for ${lockName} at ${callMs}, but was granted after its own call of ${other.callMs}`,
    );
  }
}

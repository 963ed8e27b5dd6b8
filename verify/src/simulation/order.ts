/**
 * X3: who knew that it stood in the queue before another called is granted before it.
 *
 * The order of grants is that of the tokens, since the server gives both in one step. Whoever may have missed a message
 * or a heartbeat is excused, as is who gave up, and who wanted more permits than there were for a while. Callers of one process that
 * share their claims need no server for their order, so none of them is excused.
 */
import type { Attempt } from "./attempt.js";
import type { Network } from "./messages.js";

/** Whoever has a place in the queue: one caller, or a claim that several share. */
export type Queued = Pick<Attempt, "process" | "lockName" | "callMs" | "operation"> & {
  readonly session: Pick<Attempt["session"], "id">;
};

interface Waiter {
  readonly attempt: Queued;
  enqueuedMs: number;
  isExcused: boolean;
}

/** See the file header. */
export class FifoOrder {
  readonly #waiters = new Map<number, Waiter>();
  readonly #granted: { readonly attempt: Queued; readonly token: number }[] = [];

  called(attempt: Queued): void {
    this.#waiters.set(attempt.session.id, { attempt, enqueuedMs: Infinity, isExcused: false });
  }

  /** Its process was told that it waits. @returns who, if it is the first time */
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
   * The server may have taken these waiters out of the queue, or they may have missed their grants.
   *
   * @returns who was not excused before
   */
  excuse(isMeant: (waiter: Queued) => boolean): Queued[] {
    const excused = [...this.#waiters.values()].filter(({ attempt, isExcused }) => !isExcused && isMeant(attempt));
    for (const waiter of excused) waiter.isExcused = true;
    return excused.map(({ attempt }) => attempt);
  }

  /** @returns who came later and was granted earlier, in words */
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
          `${attempt.process.name} waited for ${attempt.lockName} when ${other.attempt.process.name} called, and was granted after it`,
      );
  }
}

/** X3 among the callers of a crowd, whichever claims they are served by. */
export class CrowdOrder {
  readonly #granted: Attempt[] = [];

  /** @returns who called later and was granted earlier, in words */
  granted(attempt: Attempt): string[] {
    const { process, session, lockName, callMs } = attempt;
    // What a session does later, such as to wait for a condition, stands in another line; and a single try in none.
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
        `${process.name} called for ${lockName} at ${callMs}, and was granted after its own call of ${other.callMs}`,
    );
  }
}

/**
 * The owner-aware lock with a queue: first come, first served.
 *
 * Holdfast's own model. A grant goes to the head of the queue or, if the queue is empty, to a caller that never queued.
 * A waiter that gives up leaves. A waiter that crashes, or that the server considers dead, may be skipped from then on,
 * so `die` is an operation with an unknown outcome.
 */
import type { Model } from "../checker/index.js";
import type { History } from "../history/history.js";
import type { Operation } from "../history/records.js";
import { type Exclusive, exclusive, rulesOf } from "./exclusive.js";
import { EXPIRY, type ExpiryRules } from "./server-lease.js";

/** The state of a fair lock between two operations. */
export interface Fifo {
  readonly lock: Exclusive;
  /** The waiting owners, the next one first. */
  readonly queue: readonly string[];
}

/** An exclusive lock that is granted in queue order. Its operations come from `fifoOperations`. */
export function fifo(expiry: ExpiryRules = EXPIRY): Model<Fifo, Operation> {
  const lock = exclusive(rulesOf("fifo", { expiry }));
  const without = ({ queue }: Fifo, { owner }: Operation): string[] => queue.filter((waiter) => waiter !== owner);
  const withLock = (state: Fifo, operation: Operation): Fifo[] =>
    lock.step(state.lock, operation).map((next) => ({ ...state, lock: next }));

  function grant(state: Fifo, operation: Operation): Fifo[] {
    const isNext = state.queue.length === 0 || state.queue[0] === operation.owner;
    if (!isNext) return [];
    return withLock({ ...state, queue: without(state, operation) }, operation);
  }

  /** A caller that gave up may have been granted the lock while still queued; leaving the queue releases it. */
  function crossed(state: Fifo, operation: Operation): Fifo[] {
    if (!state.queue.includes(operation.owner)) return [state];
    return [state, ...grant(state, { ...operation, outcome: "ok" })];
  }

  function leave(state: Fifo, operation: Operation): Fifo {
    const isGranted = state.lock.holding?.owner === operation.owner;
    return { lock: isGranted ? { ...state.lock, holding: null } : state.lock, queue: without(state, operation) };
  }

  return {
    name: "fifo",
    initial: { lock: lock.initial, queue: [] },
    key: ({ lock: inner, queue }) => JSON.stringify([lock.key(inner), queue]),
    step(state, operation) {
      switch (operation.verb) {
        case "enqueue":
          return [{ ...state, queue: [...without(state, operation), operation.owner] }];
        case "leave":
          return [leave(state, operation)];
        case "die":
          return [{ ...state, queue: without(state, operation) }];
        case "acquire":
          if (operation.outcome !== "no") return grant(state, operation);
          return operation.refusal === "gave-up" ? crossed(state, operation) : withLock(state, operation);
        default:
          return withLock(state, operation);
      }
    },
  };
}

/**
 * The operations for `fifo`: each acquire with its queue place, if it had one.
 *
 * An acknowledged enqueue took effect before the acknowledgment; otherwise it is unknown whether it did. Operations
 * with other verbs are unchanged.
 */
export function fifoOperations(history: History, lockName: string): Operation[] {
  const enqueuedAt = new Map(history.enqueued.map(({ operationId, atMs }) => [operationId, atMs]));
  const deadFrom = new Map(history.missed.map(({ operationId, atMs }) => [operationId, atMs]));
  return history.operations
    .filter((operation) => operation.lockName === lockName)
    .flatMap((operation) => {
      if (operation.verb !== "acquire" || operation.refusal === "not-sent") return [operation];
      const diedMs = deadFrom.get(operation.id) ?? killedAt(history, operation);
      return [
        ...place(operation, enqueuedAt.get(operation.id)),
        operation,
        ...(operation.refusal === "gave-up" ? [{ ...operation, verb: "leave" as const, outcome: "ok" as const }] : []),
        ...(diedMs === undefined ? [] : [died(operation, diedMs)]),
      ];
    });
}

function place(operation: Operation, acknowledgedMs: number | undefined): Operation[] {
  if (acknowledgedMs !== undefined)
    return [{ ...operation, verb: "enqueue", outcome: "ok", returnMs: Math.max(operation.callMs, acknowledgedMs) }];
  if (operation.outcome === "no" && operation.refusal !== "gave-up") return [];
  return [{ ...operation, verb: "enqueue", outcome: "info", returnMs: Number.POSITIVE_INFINITY }];
}

function died(operation: Operation, diedMs: number): Operation {
  const callMs = Math.max(operation.callMs, diedMs);
  return { ...operation, verb: "die", outcome: "info", callMs, returnMs: Number.POSITIVE_INFINITY };
}

/** A kill is a fault without an end; a process survives all others. */
function killedAt({ faults }: History, { process, callMs, returnMs }: Operation): number | undefined {
  return faults.find(
    ({ target, beganMs, endedMs }) =>
      target === process && endedMs === Number.POSITIVE_INFINITY && beganMs >= callMs && beganMs <= returnMs,
  )?.beganMs;
}

/**
 * Inspections for callers whose wait has ended.
 */

import type { InspectProtocol, State, TimedOut } from "./protocol.js";
import type { Runtime } from "./runtime.js";

/** The caller of an inspection. */
export interface Inspector {
  /** Owner id of the claim whose place in the queue is requested; undefined for none. */
  readonly owner?: string | undefined;
  /** Start of the caller's acquire on the monotonic clock, in ms. */
  readonly calledAtMs: number;
  /** Timeout of the request, in ms. */
  readonly timeoutMs: number;
}

/** A request in flight. */
interface Pending {
  readonly sentAtMs: number;
  /** Owner id of the claim whose place this request asks for. */
  readonly owner: string | undefined;
  readonly state: Promise<State>;
}

/**
 * Inspects locks for callers whose wait has ended. Callers that give up on the same lock at the same time share one
 * request, because thousands of requests in one turn would block the event loop and delay renewals.
 *
 * Invariant: a caller never gets the reply to a request that was sent before its own call began. So the reply reflects
 * what the caller did before, such as resuming or force-releasing the lock.
 *
 * Each session has one instance.
 */
export class SharedInspections {
  readonly #runtime: Pick<Runtime, "monotonicMs">;
  readonly #pending = new Map<string, Pending>();

  constructor(runtime: Pick<Runtime, "monotonicMs">) {
    this.#runtime = runtime;
  }

  /**
   * Returns the state of the lock, read after the caller's call began, or the reason it could not be read. `ahead` is
   * the number of waiters ahead of the caller's claim. Never rejects.
   */
  async inspect(protocol: InspectProtocol, { owner, calledAtMs, timeoutMs }: Inspector): Promise<TimedOut> {
    const { kind, mode = "", name, key } = protocol;
    try {
      if (key === undefined) return { state: await protocol.inspect(owner, timeoutMs) };
      const lock = JSON.stringify([kind, mode, name, key, timeoutMs]);
      let pending = this.#pending.get(lock);
      if (pending === undefined || pending.sentAtMs <= calledAtMs) {
        pending = this.#send(lock, protocol, owner, timeoutMs);
      }
      const state = await pending.state;
      return { state: owner === undefined || owner === pending.owner ? state : seenBy(owner, state) };
    } catch (unseen) {
      return { state: undefined, unseen };
    }
  }

  #send(lock: string, protocol: InspectProtocol, owner: string | undefined, timeoutMs: number): Pending {
    const sentAtMs = this.#runtime.monotonicMs();
    const end = (): void => {
      if (this.#pending.get(lock) === pending) this.#pending.delete(lock);
    };
    const state = protocol.inspect(owner, timeoutMs);
    const pending: Pending = { sentAtMs, owner, state };
    this.#pending.set(lock, pending);
    state.then(end, end);
    return pending;
  }
}

/** Returns the state with `ahead` for `owner`. If `waiters` does not list all waiters, the place may be unknown. */
function seenBy(owner: string, state: State): State {
  const place = state.waiters.indexOf(owner);
  if (place >= 0) return { ...state, ahead: place };
  const isLeftOut = state.waiters.length < state.waiterCount;
  return { ...state, ahead: undefined, ...(isLeftOut ? { isPlaceUnknown: true } : {}) };
}

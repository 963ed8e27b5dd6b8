/**
 * Inspections on behalf of callers whose wait has ended: callers that give up on one lock at the same time share one request,
 * because thousands of requests in one turn would block the event loop and delay renewals.
 *
 * Invariant: a caller gets no answer to a request that was sent before its own call began. What the caller knew when it called,
 * such as a resume or a forced release of its own, is in the answer.
 */

import type { InspectProtocol, State } from "./protocol.js";
import type { Runtime } from "./runtime.js";

/** Who asks. */
export interface Inspector {
  /** The claim whose place in the queue is asked for; undefined for none. */
  readonly owner?: string | undefined;
  /** When the caller's own call began, on the monotonic clock. */
  readonly calledAtMs: number;
  readonly timeoutMs: number;
}

/** A request whose answer has not come yet. */
interface Pending {
  readonly sentAtMs: number;
  /** The claim whose place the server is asked for. */
  readonly owner: string | undefined;
  readonly state: Promise<State>;
}

/** See the file header. One for each session. */
export class SharedInspections {
  readonly #runtime: Pick<Runtime, "monotonicMs">;
  readonly #pending = new Map<string, Pending>();

  constructor(runtime: Pick<Runtime, "monotonicMs">) {
    this.#runtime = runtime;
  }

  /** The state of the lock, no older than the call of the asker; `ahead` is that of its claim. @throws StoreError */
  inspect(protocol: InspectProtocol, { owner, calledAtMs, timeoutMs }: Inspector): Promise<State> {
    const { kind, mode = "", name, key } = protocol;
    if (key === undefined) return protocol.inspect(owner, timeoutMs);
    const lock = JSON.stringify([kind, mode, name, key, timeoutMs]);
    const pending = this.#pending.get(lock);
    if (pending === undefined || pending.sentAtMs <= calledAtMs) return this.#send(lock, protocol, owner, timeoutMs);
    if (owner === undefined || owner === pending.owner) return pending.state;
    return pending.state.then((state) => seenBy(owner, state));
  }

  #send(lock: string, protocol: InspectProtocol, owner: string | undefined, timeoutMs: number): Promise<State> {
    const sentAtMs = this.#runtime.monotonicMs();
    const end = (): void => {
      if (this.#pending.get(lock) === pending) this.#pending.delete(lock);
    };
    const state = protocol.inspect(owner, timeoutMs);
    const pending: Pending = { sentAtMs, owner, state };
    this.#pending.set(lock, pending);
    state.then(end, end);
    return state;
  }
}

/** The same state as the owner of another claim would have been told it. Only the first waiters are named. */
function seenBy(owner: string, state: State): State {
  const place = state.waiters.indexOf(owner);
  if (place >= 0) return { ...state, ahead: place };
  const isLeftOut = state.waiters.length < state.waiterCount;
  return { ...state, ahead: undefined, ...(isLeftOut ? { isPlaceUnknown: true } : {}) };
}

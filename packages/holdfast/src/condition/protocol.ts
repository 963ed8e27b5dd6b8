/** The protocol of a condition. Each method is one script call with the keys of one condition of one mutex. */
import { call } from "../core/call.js";
import { LeaseLostError, StoreError } from "../core/errors.js";
import type { Hold } from "../core/hold.js";
import type { Grant, InspectProtocol, LockProtocol, State, WaitProtocol } from "../core/protocol.js";
import type { Session } from "../core/session.js";
import type { Outcome, Store } from "../core/store.js";
import { conditionInspect, conditionLeave, conditionSignal, conditionWait } from "../generated/condition.js";

/** Maximum number of waiters that `inspect` lists. */
const NAMED_WAITERS = 100;

/** The parts that the protocol of one condition needs. */
export interface ConditionPlace {
  readonly store: Store;
  /** Protocol of the mutex that the condition belongs to. */
  readonly mutex: LockProtocol;
  /** Keys of the mutex. */
  readonly lock: string;
  readonly fence: string;
  readonly queue: string;
  readonly handed: string;
  readonly pause: string;
  /** Key of the condition's queue, and the prefix of its other key. */
  readonly condition: string;
  /** Prefix of inbox channels; a client's channel is the prefix plus the client id. */
  readonly inbox: string;
}

/** The protocol that `inspect` needs to list the waiters of a condition. */
export function inspectionOf({ store, mutex, condition }: ConditionPlace): InspectProtocol {
  return {
    kind: "condition",
    name: mutex.name,
    key: condition,
    async inspect(owner = "", timeoutMs): Promise<State> {
      const caller = { store, name: mutex.name };
      const reply = await call(caller, conditionInspect, { condition }, { owner, most: NAMED_WAITERS }, timeoutMs);
      const ahead = reply.ahead < 0 ? undefined : reply.ahead;
      return { holders: [], token: undefined, waiterCount: reply.waiters, waiters: reply.owners, ahead };
    },
  };
}

/** The protocol of one wait. */
export interface ConditionWait extends WaitProtocol {
  /** Call this once the claim holds the mutex. The signal then counts as used, and `leave` does not pass it on. */
  granted(): void;
}

/** Creates the protocol of one wait by the holder `held`. After the signal, the claim requests the mutex. */
export function waitProtocol(
  session: Pick<Session, "runtime" | "commandReconnects">,
  place: ConditionPlace,
  held: Pick<Hold, "owner" | "token" | "validForMs" | "undoLateRequests"> & { readonly grant: Pick<Grant, "token"> },
): ConditionWait {
  const { store, mutex, lock, fence, queue, handed, pause, condition, inbox } = place;
  const keys = { lock, fence, queue, handed, pause, condition };
  const caller = { store, name: mutex.name };
  // The server knows the grant by the last token that the claim has reserved, so requests carry that token, which may
  // differ from the token of the lease.
  const { owner: from, token: leaseToken } = held;
  const { token } = held.grant;
  const validUntilMs = session.runtime.monotonicMs() + held.validForMs();
  let mayHaveEntered = false;
  /** Whether it is certain that `held` no longer holds the mutex. */
  let hasEntered = false;
  let isSignalled = false;
  /** Whether the signal was used or passed on. It is passed on only once, even if this claim sends `leave` again. */
  let isPassed = false;
  let leaving: Promise<unknown> = Promise.resolve();

  const entered = (): void => {
    if (!hasEntered) held.undoLateRequests();
    hasEntered = true;
  };

  const ask = async (owner: string, timeoutMs: number) => {
    const again = mayHaveEntered ? 1 : 0;
    const args = { from, token, owner, again, inbox };
    try {
      return await call(caller, conditionWait, keys, args, timeoutMs);
    } catch (error) {
      mayHaveEntered ||= error instanceof StoreError && error.mayHaveRun;
      throw error;
    }
  };

  return {
    ...inspectionOf(place),
    inbox,
    // Both methods are bound to the mutex protocol, because they read its keys.
    confirm: mutex.confirm?.bind(mutex),
    confirmHandOff: mutex.confirmHandOff?.bind(mutex),
    // True, because a short hold before the wait does not mean that the hold after it will be short too.
    confirmsFirst: true,

    granted() {
      isPassed = true;
    },

    async acquire(claim, _enqueue, timeoutMs) {
      if (isSignalled) return mutex.acquire(claim, true, timeoutMs, true);
      const reconnects = session.commandReconnects;
      let reply = await ask(claim.owner, timeoutMs);
      if (!("restMs" in reply) && !mayHaveEntered && reconnects !== session.commandReconnects) {
        // If the client sent the request twice, the first copy may have released the mutex. Ask again to find out.
        mayHaveEntered = true;
        reply = await ask(claim.owner, timeoutMs);
      }
      if (!("restMs" in reply)) {
        const reason = session.runtime.monotonicMs() < validUntilMs ? "server-lost" : "expired";
        throw new LeaseLostError(mutex.name, { reason, owner: from, token: leaseToken });
      }
      mayHaveEntered = true;
      entered();
      if (reply.outcome === "waiting") return reply;
      // From now on, this claim requests the mutex. The reply "refused" makes the waiter send that request. It is not
      // sent here, because the wait may end in this turn, and the request could then arrive after the claim's `leave`.
      isSignalled = true;
      return { ...reply, outcome: "refused" };
    },

    async leave({ owner }, timeoutMs) {
      // The requests are sent one after the other, because the second depends on the outcome of the first.
      const leave = leaving.then(async () => {
        const args = { from, token, owner, entered: isPassed ? 2 : hasEntered ? 1 : 0, inbox };
        await call(caller, conditionLeave, keys, args, timeoutMs);
        isPassed = true;
        // If the wait had not begun, this request has released the mutex.
        entered();
      });
      leaving = leave.catch(() => {});
      await leave;
    },
  };
}

/**
 * Signals up to `most` waiters, once per request number of a holder.
 *
 * @param request  number of the request, which rises with each request of a claim
 * @returns the number of waiters that were signaled (`moved`), and the number still waiting (`left`)
 */
export function signal(
  { store, mutex, lock, fence, queue, condition, inbox }: ConditionPlace,
  { owner, token }: { readonly owner: string; readonly token: number },
  request: number,
  most: number,
  timeoutMs: number,
): Promise<Outcome<(typeof conditionSignal)["replies"][number]>> {
  const caller = { store, name: mutex.name };
  const keys = { lock, fence, queue, condition, signalled: `${condition}:signalled` };
  return call(caller, conditionSignal, keys, { owner, token, request, most, inbox }, timeoutMs);
}

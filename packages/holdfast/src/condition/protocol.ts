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
  /** Prefix of inbox channels: the channel of a client is this plus its client id. */
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
  /** Call this once the claim holds the mutex. Its signal is then used, and `leave` does not pass it on. */
  granted(): void;
}

/** Creates the protocol of one wait by the holder `held`. Once signaled, it uses the protocol of the mutex. */
export function waitProtocol(
  session: Pick<Session, "runtime" | "commandReconnects">,
  place: ConditionPlace,
  held: Pick<Hold, "owner" | "token" | "validForMs" | "undoLateRequests"> & { readonly grant: Pick<Grant, "token"> },
): ConditionWait {
  const { store, mutex, lock, fence, queue, handed, pause, condition, inbox } = place;
  const keys = { lock, fence, queue, handed, pause, condition };
  const caller = { store, name: mutex.name };
  // The token on the server may differ from that of the lease.
  const { owner: from, token: leaseToken } = held;
  const { token } = held.grant;
  const validUntilMs = session.runtime.monotonicMs() + held.validForMs();
  let mayHaveEntered = false;
  /** Whether it is certain that `held` no longer holds the mutex. */
  let hasEntered = false;
  let isSignalled = false;
  /** The signal is used or passed on. It must not be passed on again, even if this claim has to leave several times. */
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
    // The method is bound to the mutex protocol, because that object has the keys of the mutex.
    confirm: mutex.confirm?.bind(mutex),
    confirmHandOff: mutex.confirmHandOff?.bind(mutex),
    // The time for which it held the mutex before the wait says nothing about the time after it.
    confirmsFirst: true,

    granted() {
      isPassed = true;
    },

    async acquire(claim, _enqueue, timeoutMs) {
      if (isSignalled) return mutex.acquire(claim, true, timeoutMs, true);
      const reconnects = session.commandReconnects;
      let reply = await ask(claim.owner, timeoutMs);
      if (!("restMs" in reply) && !mayHaveEntered && reconnects !== session.commandReconnects) {
        // The client may have sent the request twice. Then the first copy has released the mutex.
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
      // From now on this claim requests the mutex. The reply "refused" makes the waiter request the mutex next,
      // unless the wait ends in this turn. A request sent from here could then reach the server after its own release.
      isSignalled = true;
      return { ...reply, outcome: "refused" };
    },

    async leave({ owner }, timeoutMs) {
      // One after the other, because a second request depends on the outcome of the first.
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
 * @returns the number of waiters that were signaled (`moved`) and that still wait (`left`)
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

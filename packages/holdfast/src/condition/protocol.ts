/** The protocol of a condition. Each method is one script call with the keys of one condition of one mutex. */
import { call } from "../core/call.js";
import { LeaseLostError, StoreError } from "../core/errors.js";
import type { InspectProtocol, LockProtocol, NotHeld, State, WaitProtocol } from "../core/protocol.js";
import type { Store } from "../core/store.js";
import { conditionInspect, conditionLeave, conditionSignal, conditionWait } from "../generated/scripts.js";

/** Most waiters that `inspect` lists. */
const NAMED_WAITERS = 100;

/** What the protocol of one condition needs. */
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

/** The grant with which a holder waits or signals. */
export interface HeldBy {
  readonly owner: string;
  /** The token on the server; see `Hold.grant`. */
  readonly token: number;
  /** The token of the lease, as its holder sees it. */
  readonly leaseToken: number;
}

/** The protocol that `inspect` needs to list the waiters of a condition. */
export function looking({ store, mutex, condition }: ConditionPlace): InspectProtocol {
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

/**
 * Creates the protocol of one wait by the holder `from`. Once signaled, it uses the protocol of the mutex.
 *
 * @param reconnects    number of reconnects of the connection that sends scripts. If it changes during a request, that
 *                      request may have been sent twice
 * @param isStillValid  whether the lease of `from` would still be valid without this wait
 * @param onEntered     called once it is certain that `from` no longer holds the mutex
 */
export function waitProtocol(
  place: ConditionPlace,
  from: HeldBy,
  reconnects: () => number,
  isStillValid: () => boolean,
  onEntered: () => void,
): ConditionWait {
  const { store, mutex, lock, fence, queue, handed, pause, condition, inbox } = place;
  const keys = { lock, fence, queue, handed, pause, condition };
  const caller = { store, name: mutex.name };
  let mayHaveEntered = false;
  let hasEntered = false;
  let isSignalled = false;
  let isKnown = false;
  /** The signal is used or passed on. It must not be passed on again, even if this claim has to leave several times. */
  let isPassed = false;
  let leaving: Promise<unknown> = Promise.resolve();

  const ask = async (owner: string, timeoutMs: number) => {
    const again = mayHaveEntered ? 1 : 0;
    const args = { from: from.owner, token: from.token, owner, again, inbox };
    try {
      return await call(caller, conditionWait, keys, args, timeoutMs);
    } catch (error) {
      mayHaveEntered ||= error instanceof StoreError && error.mayHaveRun;
      throw error;
    }
  };

  return {
    ...looking(place),
    inbox,
    // Bound to the mutex protocol, because that has the keys of the mutex.
    confirm: mutex.confirm?.bind(mutex),
    confirmHandOff: mutex.confirmHandOff?.bind(mutex),
    // How long it held the mutex before the wait says nothing about how long it will hold it after the wait.
    confirmsFirst: true,

    granted() {
      isPassed = true;
    },

    async acquire(claim, _enqueue, timeoutMs) {
      if (isSignalled) return mutex.acquire(claim, true, timeoutMs, true);
      const reconnectsBefore = reconnects();
      let reply = await ask(claim.owner, timeoutMs);
      if (!("restMs" in reply) && !mayHaveEntered && reconnects() !== reconnectsBefore) {
        // The client may have sent the request twice. Then the first copy has released the mutex.
        mayHaveEntered = true;
        reply = await ask(claim.owner, timeoutMs);
      }
      if (!("restMs" in reply)) {
        const reason = isStillValid() ? "server-lost" : "expired";
        throw new LeaseLostError(mutex.name, { reason, owner: from.owner, token: from.leaseToken });
      }
      mayHaveEntered = true;
      hasEntered = true;
      if (!isKnown) onEntered();
      isKnown = true;
      if (reply.outcome === "waiting") return reply;
      // From now on this claim requests the mutex. The reply "refused" makes the waiter do so in its next request,
      // unless the wait ends in this turn. A request sent from here could then reach the server after its own release.
      isSignalled = true;
      return { ...reply, outcome: "refused" };
    },

    async leave({ owner }, timeoutMs) {
      // One after the other, because a second request depends on the outcome of the first.
      const leave = leaving.then(async () => {
        const args = { from: from.owner, token: from.token, owner, entered: isPassed ? 2 : hasEntered ? 1 : 0, inbox };
        await call(caller, conditionLeave, keys, args, timeoutMs);
        isPassed = true;
        // If the wait had not begun, this request has released the mutex.
        if (!isKnown) onEntered();
        isKnown = true;
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
export async function signal(
  { store, mutex, lock, fence, queue, condition, inbox }: ConditionPlace,
  { owner, token }: Omit<HeldBy, "leaseToken">,
  request: number,
  most: number,
  timeoutMs: number,
): Promise<
  { readonly outcome: NotHeld } | { readonly outcome: "signalled"; readonly moved: number; readonly left: number }
> {
  const caller = { store, name: mutex.name };
  const keys = { lock, fence, queue, condition, signalled: `${condition}:signalled` };
  return call(caller, conditionSignal, keys, { owner, token, request, most, inbox }, timeoutMs);
}

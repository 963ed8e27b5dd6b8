/** The protocol of a condition: each one script call, with the keys of one condition of one mutex. */
import { call } from "../core/call.js";
import { LeaseLostError, StoreError } from "../core/errors.js";
import type { InspectProtocol, LockProtocol, NotHeld, State, WaitProtocol } from "../core/protocol.js";
import type { Store } from "../core/store.js";
import { conditionInspect, conditionLeave, conditionSignal, conditionWait } from "../generated/scripts.js";

/** How many waiters `inspect` names. */
const NAMED_WAITERS = 100;

/** What the protocol of one condition needs to know. */
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
  /** The condition's own queue; a suffix makes its other key. */
  readonly condition: string;
  /** What a client id is appended to for its channel. */
  readonly inbox: string;
}

/** The grant with which a holder waits or signals. */
export interface HeldBy {
  readonly owner: string;
  /** As the server has it; see `Hold.grant`. */
  readonly token: number;
  /** As the holder knows it. */
  readonly leaseToken: number;
}

/** Who waits. */
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

/** One wait. */
export interface ConditionWait extends WaitProtocol {
  /** The claim holds the mutex: its signal has done its work, and is passed on to nobody. */
  granted(): void;
}

/**
 * The protocol of one wait by the holder `from`. Once it is signalled they are those of the mutex.
 *
 * @param reconnects  how often the connection that sends scripts has come back: a request may have been sent twice
 * @param isStillValid  whether the lease of `from` would still be valid if it had not waited
 * @param onEntered  called once it is certain that `from` holds no more
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
  /** The signal has done its work, or has been passed on: once is enough, however often this claim has to leave. */
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
    // Of the mutex itself, which knows its keys.
    confirm: mutex.confirm?.bind(mutex),
    confirmHandOff: mutex.confirmHandOff?.bind(mutex),
    // How long it will hold the mutex does not follow from how long it held it before it waited.
    confirmsFirst: true,

    granted() {
      isPassed = true;
    },

    async acquire(claim, _enqueue, timeoutMs) {
      if (isSignalled) return mutex.acquire(claim, true, timeoutMs, true);
      const reconnectsBefore = reconnects();
      let reply = await ask(claim.owner, timeoutMs);
      if (!("restMs" in reply) && !mayHaveEntered && reconnects() !== reconnectsBefore) {
        // The client may have sent it twice, and the first copy gave the mutex away.
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
      // From now on it asks for the mutex, at once, unless it is given up or granted in this very turn: two calls
      // in one step would let the second arrive after its own release.
      isSignalled = true;
      return { ...reply, outcome: "refused" };
    },

    async leave({ owner }, timeoutMs) {
      // One after the other: a second request must know what became of the first.
      const leave = leaving.then(async () => {
        const args = { from: from.owner, token: from.token, owner, entered: isPassed ? 2 : hasEntered ? 1 : 0, inbox };
        await call(caller, conditionLeave, keys, args, timeoutMs);
        isPassed = true;
        // Given back by now, if the wait had not begun.
        if (!isKnown) onEntered();
        isKnown = true;
      });
      leaving = leave.catch(() => {});
      await leave;
    },
  };
}

/** Signals up to `most` waiters, once for each `request` of a holder. */
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

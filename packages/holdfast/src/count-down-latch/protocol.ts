/** The protocol of a count-down latch. Each method is one script call with the keys of one latch. */
import { call } from "../core/call.js";
import type { InspectProtocol, State, WaitProtocol } from "../core/protocol.js";
import type { Store } from "../core/store.js";
import {
  countDownLatchAwait,
  countDownLatchCountDown,
  countDownLatchInspect,
  countDownLatchLeave,
  countDownLatchSetCount,
} from "../generated/count-down-latch.js";

/** Maximum number of waiters that `inspect` lists. */
const NAMED_WAITERS = 100;

/** The parts that the protocol of one latch needs. */
export interface LatchPlace {
  readonly store: Store;
  readonly name: string;
  /** The key of the latch, and the prefix of its other keys. */
  readonly base: string;
  /** Prefix of inbox channels; a client's channel is the prefix plus the client id. */
  readonly inbox: string;
  readonly keepMs: number;
}

/** The state of a latch on the server. */
export interface LatchState extends State {
  readonly count: number;
  readonly initialCount: number;
}

/** The protocol of one latch. */
export interface LatchProtocol extends InspectProtocol {
  inspect(owner: string | undefined, timeoutMs: number): Promise<LatchState>;

  /** Sets the count, unless a count above zero is set. Idempotent for each `request`. @returns whether it was set */
  setCount(count: number, request: string, timeoutMs: number): Promise<boolean>;

  /** Subtracts `by` from the count, once per `request` and once per nonempty `counter`. @returns the remaining count */
  countDown(request: string, counter: string, by: number, timeoutMs: number): Promise<number>;

  /** Returns the protocol of one wait for a count of zero. */
  wait(): WaitProtocol;
}

/** Creates the protocol of one latch. */
export function latchProtocol({ store, name, base: latch, inbox, keepMs }: LatchPlace): LatchProtocol {
  const caller = { store, name };
  const counted = `${latch}:counted`;
  const waiters = `${latch}:waiters`;
  const kind = "count-down-latch";

  const protocol: LatchProtocol = {
    kind,
    name,
    key: latch,

    async inspect(owner = "", timeoutMs) {
      const args = { owner, most: NAMED_WAITERS };
      const reply = await call(caller, countDownLatchInspect, { latch, waiters }, args, timeoutMs);
      return {
        holders: [],
        token: undefined,
        waiterCount: reply.waiters,
        waiters: reply.owners,
        ahead: reply.ahead < 0 ? undefined : reply.ahead,
        count: reply.count,
        initialCount: reply.initial,
      };
    },

    async setCount(count, request, timeoutMs) {
      const args = { count, request, keepMs };
      return (await call(caller, countDownLatchSetCount, { latch, counted }, args, timeoutMs)).outcome === "set";
    },

    async countDown(request, counter, by, timeoutMs) {
      const args = { request, caller: counter, by, keepMs, inbox };
      return (await call(caller, countDownLatchCountDown, { latch, counted, waiters }, args, timeoutMs)).count;
    },

    wait() {
      let since = 0;
      return {
        kind,
        name,
        key: latch,
        holdsNothing: true,
        inspect: protocol.inspect,

        async acquire({ owner }, enqueue, timeoutMs) {
          const args = { owner, since, enqueue: enqueue ? 1 : 0, keepMs };
          const reply = await call(caller, countDownLatchAwait, { latch, counted, waiters }, args, timeoutMs);
          if (reply.outcome === "granted") return { outcome: "granted", token: since };
          since = reply.generation;
          // `restMs` is -1, because a latch has no lease whose end could determine when to ask again.
          return { outcome: reply.outcome, restMs: -1, nowUs: reply.nowUs };
        },

        async leave({ owner }, timeoutMs) {
          await call(caller, countDownLatchLeave, { waiters }, { owner }, timeoutMs);
        },
      };
    },
  };
  return protocol;
}

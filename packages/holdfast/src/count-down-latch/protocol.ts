/** The protocol of a count-down latch: each one script call, with the keys of one name. */
import { call } from "../core/call.js";
import type { InspectProtocol, State, WaitProtocol } from "../core/protocol.js";
import type { Store } from "../core/store.js";
import {
  countDownLatchAwait,
  countDownLatchCountDown,
  countDownLatchInspect,
  countDownLatchLeave,
  countDownLatchSetCount,
} from "../generated/scripts.js";

/** How many waiters `inspect` names. */
const NAMED_WAITERS = 100;

/** What the protocol of one latch needs to know. */
export interface LatchPlace {
  readonly store: Store;
  readonly name: string;
  /** The latch's key; a suffix makes the others. */
  readonly base: string;
  /** What a client id is appended to for its channel. */
  readonly inbox: string;
  readonly keepMs: number;
}

/** What the server says about a latch. */
export interface LatchState extends State {
  readonly count: number;
  readonly initialCount: number;
}

/** The protocol of the latch at a place. */
export interface LatchProtocol extends InspectProtocol {
  inspect(owner: string | undefined, timeoutMs: number): Promise<LatchState>;

  /** Sets the count unless one is still counting; once for each request. */
  setCount(count: number, request: string, timeoutMs: number): Promise<boolean>;

  /** Takes `by` off the count, once for each request, and once for each counter that is not empty; what is left. */
  countDown(request: string, counter: string, by: number, timeoutMs: number): Promise<number>;

  /** The protocol of one wait for zero. */
  wait(): WaitProtocol;
}

/** The protocol of the latch at `place`. */
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
          // No lease stands in the way, whose end would be a time to ask.
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

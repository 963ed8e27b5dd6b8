/** The protocol of a Redisson count-down latch. Each operation is one script call. */

import type { InspectProtocol, State, WaitProtocol } from "holdfast/internal";
import {
  interopRedissonLatchCount,
  interopRedissonLatchCountDown,
  interopRedissonLatchDelete,
  interopRedissonLatchTrySetCount,
} from "../generated/redisson.js";
import { type CountPlace, callAt, refused } from "./permits-place.js";

/** The operations of a latch. A request takes effect once, however often it is sent. */
export interface RedissonLatchProtocol extends InspectProtocol {
  /** The protocol of a wait for zero. */
  readonly wait: WaitProtocol;
  /** Returns the count; 0 if there is none. */
  count(timeoutMs: number): Promise<number>;
  /** Sets the count. Returns false if there already is one. */
  trySetCount(count: number, request: string, timeoutMs: number): Promise<boolean>;
  /** Decrements the count and returns it; 0 if there is none. */
  countDown(request: string, timeoutMs: number): Promise<number>;
  /** Deletes the count. Returns false if there was none. */
  delete(request: string, timeoutMs: number): Promise<boolean>;
}

/** Returns the protocol of the latch at `place`. */
export function redissonLatchProtocol(place: CountPlace): RedissonLatchProtocol {
  const { store, name, kind, raw: latch, keepMs } = place;
  const caller = { store, name };
  const publication = { ...place.publication, keepMs };
  const ask = callAt(place);
  const keysOf = (request: string): { latch: string; request: string } => ({
    latch,
    request: place.requestKey(request),
  });
  const readCount = async (timeoutMs: number): Promise<{ readonly left: number; readonly nowUs: number }> => {
    const reply = await ask(caller, interopRedissonLatchCount, { latch }, { name: latch }, timeoutMs);
    if (reply.outcome !== "counting") throw refused(place, reply.outcome);
    return reply;
  };
  // A latch has no holders, and the server does not record its waiters.
  const nobody: State = { holders: [], token: undefined, waiterCount: 0, waiters: [], ahead: undefined };
  const inspect: InspectProtocol["inspect"] = () => Promise.resolve(nobody);

  return {
    kind,
    name,
    inspect,

    wait: {
      kind,
      name,
      holdsNothing: true,
      inspect,
      async acquire(_claim, _enqueue, timeoutMs) {
        const { left, nowUs } = await readCount(timeoutMs);
        return left === 0 ? { outcome: "granted", token: 0 } : { outcome: "refused", restMs: -1, nowUs };
      },
      leave: () => Promise.resolve(),
    },

    count: async (timeoutMs) => (await readCount(timeoutMs)).left,

    async trySetCount(amount, request, timeoutMs) {
      const args = { amount, ...publication };
      const reply = await ask(caller, interopRedissonLatchTrySetCount, keysOf(request), args, timeoutMs);
      if (reply.outcome !== "done") throw refused(place, reply.outcome);
      return reply.value === 1;
    },

    async countDown(request, timeoutMs) {
      const reply = await ask(caller, interopRedissonLatchCountDown, keysOf(request), publication, timeoutMs);
      if (reply.outcome !== "done") throw refused(place, reply.outcome);
      return reply.value;
    },

    async delete(request, timeoutMs) {
      const reply = await ask(caller, interopRedissonLatchDelete, keysOf(request), publication, timeoutMs);
      if (reply.outcome !== "done") throw refused(place, reply.outcome);
      return reply.value === 1;
    },
  };
}

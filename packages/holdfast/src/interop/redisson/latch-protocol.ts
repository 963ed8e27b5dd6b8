/** The protocol of a count-down latch of Redisson: each one script call, with the keys of one name. */

import {
  interopRedissonLatchCount,
  interopRedissonLatchCountDown,
  interopRedissonLatchDelete,
  interopRedissonLatchTrySetCount,
} from "../../generated/redisson-scripts.js";
import type { InspectProtocol, State, WaitProtocol } from "../../internal.js";
import { type CountPlace, callAt, refused } from "./permits-place.js";

/** The protocol of the latch at a place. Each request counts once, however often it is sent. */
export interface RedissonLatchProtocol extends InspectProtocol {
  /** Those of a wait for zero. */
  readonly wait: WaitProtocol;
  /** What is left; 0 also if there is no count. */
  count(timeoutMs: number): Promise<number>;
  /** False if there was a count already. */
  trySetCount(count: number, request: string, timeoutMs: number): Promise<boolean>;
  /** What is left. */
  countDown(request: string, timeoutMs: number): Promise<number>;
  /** False if there was no count. */
  delete(request: string, timeoutMs: number): Promise<boolean>;
}

/** The protocol of the latch at `place`. */
export function redissonLatchProtocol(place: CountPlace): RedissonLatchProtocol {
  const { store, name, kind, raw: latch, keepMs } = place;
  const caller = { store, name };
  const tell = { ...place.tell, keepMs };
  const ask = callAt(place);
  const keysOf = (request: string): { latch: string; request: string } => ({
    latch,
    request: place.requestKey(request),
  });
  const look = async (timeoutMs: number): Promise<{ readonly left: number; readonly nowUs: number }> => {
    const reply = await ask(caller, interopRedissonLatchCount, { latch }, { name: latch }, timeoutMs);
    if (reply.outcome !== "counting") throw refused(place, reply.outcome);
    return reply;
  };
  // Nobody holds a latch, and who waits for it is written nowhere.
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
        const { left, nowUs } = await look(timeoutMs);
        return left === 0 ? { outcome: "granted", token: 0 } : { outcome: "refused", restMs: -1, nowUs };
      },
      leave: () => Promise.resolve(),
    },

    count: async (timeoutMs) => (await look(timeoutMs)).left,

    async trySetCount(amount, request, timeoutMs) {
      const args = { amount, ...tell };
      const reply = await ask(caller, interopRedissonLatchTrySetCount, keysOf(request), args, timeoutMs);
      if (reply.outcome !== "done") throw refused(place, reply.outcome);
      return reply.value === 1;
    },

    async countDown(request, timeoutMs) {
      const reply = await ask(caller, interopRedissonLatchCountDown, keysOf(request), tell, timeoutMs);
      if (reply.outcome !== "done") throw refused(place, reply.outcome);
      return reply.value;
    },

    async delete(request, timeoutMs) {
      const reply = await ask(caller, interopRedissonLatchDelete, keysOf(request), tell, timeoutMs);
      if (reply.outcome !== "done") throw refused(place, reply.outcome);
      return reply.value === 1;
    },
  };
}

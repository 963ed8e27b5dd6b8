/** The simplest foreign lock as a protocol: SET NX PX, compare-and-delete, and a message on each release. */
import type { Redis } from "ioredis";
import type { AcquireReply, LockProtocol, State } from "../../holdfast/src/core/protocol.js";

const REST = "local time = redis.call('TIME') return {redis.call('PTTL', KEYS[1]), time[1] * 1000000 + time[2]}";
const TAKE = `if redis.call('GET', KEYS[1]) == ARGV[1] or redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then
  redis.call('PEXPIRE', KEYS[1], ARGV[2]) return 1 end return 0`;
const GIVE = `if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('DEL', KEYS[1]) redis.call('PUBLISH', ARGV[2], 'free') return 1`;
const EXTEND =
  "if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end return redis.call('PEXPIRE', KEYS[1], ARGV[2])";

/** Protocol of the lock at `key`. `asked` counts its acquire requests. */
export interface KeyProtocol extends LockProtocol {
  readonly asked: () => number;
  readonly channel: string;
}

/** @param redis  a client other than Holdfast's, so that its commands are not counted as Holdfast's */
export function keyProtocol(redis: Redis, key: string): KeyProtocol {
  const channel = `free:${key}`;
  let asked = 0;
  const isOwn = async (script: string, ...args: (string | number)[]): Promise<boolean> =>
    Number(await redis.eval(script, 1, key, ...args)) === 1;
  return {
    kind: "key",
    name: key,
    key,
    channel,
    exported: undefined,
    asked: () => asked,
    async acquire({ owner, leaseMs }): Promise<AcquireReply> {
      asked += 1;
      if (await isOwn(TAKE, owner, leaseMs)) return { outcome: "granted", token: 1 };
      const [restMs, nowUs] = (await redis.eval(REST, 1, key)) as [number, number];
      return { outcome: "refused", restMs, nowUs };
    },
    extend: async ({ claim }, leaseMs) => ((await isOwn(EXTEND, claim.owner, leaseMs)) ? "extended" : "forgotten"),
    release: async ({ claim }) => ((await isOwn(GIVE, claim.owner, channel)) ? "released" : "forgotten"),
    async leave({ owner }) {
      await isOwn(GIVE, owner, channel);
    },
    adopt: () => Promise.reject(new Error("its leases do not move")),
    forceRelease: ({ owner = "" }) => isOwn(GIVE, owner, channel),
    async inspect(): Promise<State> {
      const owner = await redis.get(key);
      const holders = owner === null ? [] : [{ owner, token: undefined, leaseLeftMs: await redis.pttl(key) }];
      return { holders, token: undefined, waiterCount: 0, waiters: [], ahead: undefined };
    },
  };
}

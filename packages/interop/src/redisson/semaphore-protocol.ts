/** The protocol of a plain Redisson semaphore. Each operation is one script call. */

import { UnsupportedError } from "holdfast";
import type { LockProtocol, NotHeld, State } from "holdfast/internal";
import {
  interopRedissonSemaphoreAcquire,
  interopRedissonSemaphoreAdd,
  interopRedissonSemaphoreCount,
  interopRedissonSemaphoreDrain,
  interopRedissonSemaphoreExtend,
  interopRedissonSemaphoreForceRelease,
  interopRedissonSemaphoreInspect,
  interopRedissonSemaphoreRelease,
  interopRedissonSemaphoreTrySetPermits,
} from "../generated/redisson.js";
import { callAt, type PermitsPlace, refused } from "./permits-place.js";

/** Maximum number of holders that `inspect` returns. */
const NAMED_HOLDERS = 1_000;

/**
 * The lock protocol plus the other operations of the semaphore. A request takes effect once, however often it is sent.
 */
export interface RedissonSemaphoreProtocol extends LockProtocol {
  /**
   * Returns the number of free permits: 0 without a semaphore, negative if more were removed than were free. Returns
   * undefined if permits of more expired leases must be reclaimed first: then ask again.
   */
  available(timeoutMs: number): Promise<number | undefined>;
  /** Sets the number of permits. `ttlMs` 0 means forever. Returns false if the semaphore already exists. */
  trySetPermits(permits: number, ttlMs: number, request: string, timeoutMs: number): Promise<boolean>;
  /** Adds permits, or removes some if negative. Returns false if `onlyIfThere` is true and there is no semaphore. */
  add(permits: number, onlyIfThere: boolean, request: string, timeoutMs: number): Promise<boolean>;
  /** Removes all free permits and returns how many there were. */
  drain(request: string, timeoutMs: number): Promise<number>;
  /** Returns the number of free permits, and the Holdfast holders with the number of permits that each has. */
  inspect(owner: string | undefined, timeoutMs: number): Promise<RedissonSemaphoreState>;
}

/** The state of a semaphore on the server. */
export interface RedissonSemaphoreState extends State {
  /** The number of free permits; undefined if the semaphore does not exist. */
  readonly free: number | undefined;
  /** The number of permits of each of `holders`, in the same order. */
  readonly held: readonly number[];
}

/** Returns the protocol of the semaphore at `place`. */
export function redissonSemaphoreProtocol(place: PermitsPlace): RedissonSemaphoreProtocol {
  const { store, name, raw: permits, timeout, leases, grants, publication, keepMs } = place;
  const { channel, how } = publication;
  const caller = { store, name };
  const own = { permits, leases, grants };
  const ask = callAt(place);

  const release = async (owner: string, token: string, timeoutMs: number): Promise<"released" | NotHeld> => {
    const args = { owner, token, channel, how };
    return (await ask(caller, interopRedissonSemaphoreRelease, own, args, timeoutMs)).outcome;
  };

  const protocol: RedissonSemaphoreProtocol = {
    kind: place.kind,
    name,
    key: permits,
    exported: undefined,
    ...(store.confirmsGrants === true && {
      confirm: (granted, timeoutMs) => protocol.extend(granted, granted.claim.leaseMs, timeoutMs),
    }),

    async acquire({ owner, leaseMs, amount }, _enqueue, timeoutMs) {
      const args = { owner, leaseMs, amount, ...publication };
      const reply = await ask(caller, interopRedissonSemaphoreAcquire, { ...own, timeout }, args, timeoutMs);
      switch (reply.outcome) {
        case "granted":
          return { outcome: "granted", token: reply.token };
        case "busy":
          return { outcome: "refused", restMs: reply.restMs, nowUs: reply.nowUs };
        default:
          throw refused(place, reply.outcome);
      }
    },

    async extend({ claim: { owner }, token }, leaseMs, timeoutMs) {
      const args = { owner, token, leaseMs };
      return (await ask(caller, interopRedissonSemaphoreExtend, own, args, timeoutMs)).outcome;
    },

    release: ({ claim: { owner }, token }, timeoutMs) => release(owner, String(token), timeoutMs),

    async leave({ owner }, timeoutMs) {
      await release(owner, "", timeoutMs);
    },

    adopt: () =>
      Promise.reject(new UnsupportedError(name, "Leases of a Redisson semaphore cannot move to another process.")),

    async forceRelease({ owner = "", token = "" }, timeoutMs) {
      const reply = await ask(
        caller,
        interopRedissonSemaphoreForceRelease,
        own,
        { owner, token, ...publication },
        timeoutMs,
      );
      if (reply.outcome === "released" || reply.outcome === "absent") return reply.outcome === "released";
      throw refused(place, reply.outcome);
    },

    async inspect(_owner, timeoutMs) {
      const args = { name: permits, most: NAMED_HOLDERS };
      const reply = await ask(caller, interopRedissonSemaphoreInspect, own, args, timeoutMs);
      const none = { token: undefined, waiterCount: 0, waiters: [], ahead: undefined };
      if (reply.outcome === "unset") return { ...none, holders: [], free: undefined, held: [] };
      if (reply.outcome !== "seen") throw refused(place, reply.outcome);
      const holders = threes(reply.rest).map(([owner, grant, leaseLeftMs]) => ({
        owner,
        token: Number(grant.split("/")[1]),
        leaseLeftMs: Number(leaseLeftMs),
      }));
      const held = threes(reply.rest).map(([, grant]) => Number(grant.split("/")[0]));
      const tokens = holders.map(({ token }) => token);
      return { ...none, holders, token: tokens.length > 0 ? Math.max(...tokens) : undefined, free: reply.free, held };
    },

    async available(timeoutMs) {
      const reply = await ask(caller, interopRedissonSemaphoreCount, { ...own, timeout }, publication, timeoutMs);
      if (reply.outcome === "more") return undefined;
      if (reply.outcome !== "done") throw refused(place, reply.outcome);
      return reply.value;
    },

    async trySetPermits(amount, ttlMs, request, timeoutMs) {
      const keys = { ...own, other: timeout, request: place.requestKey(request) };
      const args = { amount, ttlMs, keepMs, ...publication };
      const reply = await ask(caller, interopRedissonSemaphoreTrySetPermits, keys, args, timeoutMs);
      if (reply.outcome !== "done") throw refused(place, reply.outcome);
      return reply.value === 1;
    },

    async add(amount, onlyIfThere, request, timeoutMs) {
      const keys = { ...own, timeout, request: place.requestKey(request) };
      const args = { amount, onlyIfThere: onlyIfThere ? 1 : 0, keepMs, ...publication };
      const reply = await ask(caller, interopRedissonSemaphoreAdd, keys, args, timeoutMs);
      if (reply.outcome !== "done") throw refused(place, reply.outcome);
      return reply.value === 1;
    },

    async drain(request, timeoutMs) {
      const keys = { permits, timeout, request: place.requestKey(request) };
      const reply = await ask(caller, interopRedissonSemaphoreDrain, keys, { name: permits, keepMs }, timeoutMs);
      if (reply.outcome !== "done") throw refused(place, reply.outcome);
      return reply.value;
    },
  };
  return protocol;
}

/** Splits a flat list into triples. */
function threes(flat: readonly string[]): (readonly [string, string, string])[] {
  return Array.from({ length: Math.floor(flat.length / 3) }, (_, i) => [
    flat[3 * i] ?? "",
    flat[3 * i + 1] ?? "",
    flat[3 * i + 2] ?? "",
  ]);
}

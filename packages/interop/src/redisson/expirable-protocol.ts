/** The protocol of a Redisson semaphore with permits that expire. Each operation is one script call. */

import { UnsupportedError } from "holdfast";
import type { LockProtocol, State } from "holdfast/internal";
import {
  interopRedissonExpirableSemaphoreAcquire,
  interopRedissonExpirableSemaphoreAddPermits,
  interopRedissonExpirableSemaphoreCount,
  interopRedissonExpirableSemaphoreExtend,
  interopRedissonExpirableSemaphoreInspect,
  interopRedissonExpirableSemaphoreLeaseTime,
  interopRedissonExpirableSemaphoreRelease,
  interopRedissonExpirableSemaphoreSetPermits,
  interopRedissonExpirableSemaphoreTryRelease,
  interopRedissonExpirableSemaphoreTryReleaseAll,
  interopRedissonExpirableSemaphoreUpdateLease,
  interopRedissonSemaphoreTrySetPermits,
} from "../generated/redisson.js";
import { checkPermitId, permitIdsOf } from "./permit-ids.js";
import { callAt, type PermitsPlace, refused } from "./permits-place.js";

/** Maximum number of permits that `inspect` returns. */
const NAMED_PERMITS = 1_000;

/** Result of releasing a permit by its id. */
export type PermitRelease = "released" | "late" | "not-held";

/** The number of free and held permits. */
export interface PermitCounts {
  /** The number of free permits; negative if fewer permits were set than are held. */
  readonly free: number;
  /** The number of held permits. */
  readonly held: number;
}

/** The state of the semaphore on the server. */
export interface ExpirableState extends State {
  /** The number of free permits. */
  readonly free: number;
}

/**
 * The lock protocol plus the other operations of the semaphore. A request takes effect once, however often it is sent.
 */
export interface ExpirableProtocol extends LockProtocol {
  /** Returns the number of free permits, and the ids of held permits as holders. */
  inspect(owner: string | undefined, timeoutMs: number): Promise<ExpirableState>;
  /**
   * Returns the number of free and held permits. Returns undefined if permits of more expired leases must be reclaimed
   * first: then ask again.
   */
  counts(timeoutMs: number): Promise<PermitCounts | undefined>;
  /** Sets the number of permits. `ttlMs` 0 means forever. Returns false if the semaphore already exists. */
  trySetPermits(permits: number, ttlMs: number, request: string, timeoutMs: number): Promise<boolean>;
  /** Changes the total number of permits, including those that are held. */
  setPermits(permits: number, request: string, timeoutMs: number): Promise<void>;
  /** Adds permits, or removes some if `permits` is negative. */
  addPermits(permits: number, request: string, timeoutMs: number): Promise<void>;
  /** Releases a permit by its id. */
  tryRelease(id: string, request: string, timeoutMs: number): Promise<PermitRelease>;
  /** Releases permits by their ids, all or none. Returns false if one was not held or its lease had ended. */
  tryReleaseAll(ids: readonly string[], request: string, timeoutMs: number): Promise<boolean>;
  /** Sets the end of a lease to `leaseMs` from now; -1 means never. Returns false if the permit is not held. */
  updateLease(id: string, leaseMs: number, timeoutMs: number): Promise<boolean>;
  /** Returns the remaining lease of a permit in ms: Infinity if it never ends, undefined if the permit is not held. */
  leaseTime(id: string, timeoutMs: number): Promise<number | undefined>;
}

const RELEASES: readonly PermitRelease[] = ["not-held", "released", "late"];

/** Returns the protocol of the semaphore at `place`. */
export function expirableProtocol(place: PermitsPlace): ExpirableProtocol {
  const { store, name, raw: permits, timeout, leases, grants, publication, keepMs } = place;
  const { channel, how } = publication;
  const caller = { store, name };
  const counted = { permits, leases, timeout };
  const ask = callAt(place);
  const requested = (request: string): { permits: string; request: string; timeout: string } => ({
    permits,
    request: place.requestKey(request),
    timeout,
  });

  const release = async (ids: readonly string[], timeoutMs: number): Promise<boolean> => {
    const args = { ids: ids.join(""), channel, how };
    const reply = await ask(caller, interopRedissonExpirableSemaphoreRelease, { permits, timeout }, args, timeoutMs);
    return reply.outcome === "released";
  };

  const protocol: ExpirableProtocol = {
    kind: place.kind,
    name,
    key: permits,
    exported: undefined,
    ...(store.confirmsGrants === true && {
      confirm: (granted, timeoutMs) => protocol.extend(granted, granted.claim.leaseMs, timeoutMs),
    }),

    async acquire(claim, _enqueue, timeoutMs) {
      const { leaseMs, amount } = claim;
      const args = { ids: permitIdsOf(claim).join(""), leaseMs, amount, ...publication };
      const reply = await ask(caller, interopRedissonExpirableSemaphoreAcquire, counted, args, timeoutMs);
      switch (reply.outcome) {
        case "granted":
          return { outcome: "granted", token: reply.token };
        case "busy":
          return { outcome: "refused", restMs: reply.restMs, nowUs: reply.nowUs };
        default:
          throw refused(place, reply.outcome);
      }
    },

    async extend({ claim }, leaseMs, timeoutMs) {
      const args = { ids: permitIdsOf(claim).join(""), leaseMs };
      return (await ask(caller, interopRedissonExpirableSemaphoreExtend, { timeout }, args, timeoutMs)).outcome;
    },

    release: async ({ claim }, timeoutMs) => ((await release(permitIdsOf(claim), timeoutMs)) ? "released" : "claimed"),

    async leave(claim, timeoutMs) {
      await release(permitIdsOf(claim), timeoutMs);
    },

    adopt: () =>
      Promise.reject(new UnsupportedError(name, "Leases of a Redisson semaphore cannot move to another process.")),

    async forceRelease({ owner = "", token }, timeoutMs) {
      if (token !== undefined) {
        throw new UnsupportedError(
          name,
          "Nothing was released: Redisson stores no token for a permit. Pass its id as { owner } to forceRelease.",
        );
      }
      // A client that adds a prefix to keys sees no permits, so use `tryRelease`, whose script detects the prefix.
      const request = place.scope.session.newRequestId(name);
      return (await protocol.tryRelease(checkPermitId(owner), request, timeoutMs)) !== "not-held";
    },

    async inspect(_owner, timeoutMs) {
      const args = { name: permits, most: NAMED_PERMITS };
      const reply = await ask(caller, interopRedissonExpirableSemaphoreInspect, { permits, timeout }, args, timeoutMs);
      if (reply.outcome !== "seen") throw refused(place, reply.outcome);
      const holders = Array.from({ length: reply.rest.length / 2 }, (_, i) => {
        const leftMs = Number(reply.rest[2 * i + 1]);
        return { owner: reply.rest[2 * i] ?? "", token: undefined, leaseLeftMs: leftMs < 0 ? Infinity : leftMs };
      });
      return { holders, token: undefined, waiterCount: 0, waiters: [], ahead: undefined, free: reply.free };
    },

    async counts(timeoutMs) {
      const reply = await ask(caller, interopRedissonExpirableSemaphoreCount, counted, publication, timeoutMs);
      if (reply.outcome === "more") return undefined;
      if (reply.outcome !== "done") throw refused(place, reply.outcome);
      return { free: reply.free, held: reply.held };
    },

    async trySetPermits(amount, ttlMs, request, timeoutMs) {
      // Recorded leases mean that a plain semaphore with this name exists. Then the script refuses and deletes nothing.
      const keys = { permits, request: place.requestKey(request), other: leases, leases, grants };
      const args = { amount, ttlMs, keepMs, ...publication };
      const reply = await ask(caller, interopRedissonSemaphoreTrySetPermits, keys, args, timeoutMs);
      if (reply.outcome !== "done") throw refused(place, reply.outcome);
      return reply.value === 1;
    },

    async setPermits(amount, request, timeoutMs) {
      const keys = { ...requested(request), leases };
      const args = { amount, keepMs, ...publication };
      const reply = await ask(caller, interopRedissonExpirableSemaphoreSetPermits, keys, args, timeoutMs);
      if (reply.outcome !== "done") throw refused(place, reply.outcome);
    },

    async addPermits(amount, request, timeoutMs) {
      const keys = { permits, request: place.requestKey(request), leases };
      const args = { amount, keepMs, ...publication };
      const reply = await ask(caller, interopRedissonExpirableSemaphoreAddPermits, keys, args, timeoutMs);
      if (reply.outcome !== "done") throw refused(place, reply.outcome);
    },

    async tryRelease(id, request, timeoutMs) {
      const args = { id, keepMs, ...publication };
      const keys = requested(request);
      const reply = await ask(caller, interopRedissonExpirableSemaphoreTryRelease, keys, args, timeoutMs);
      if (reply.outcome !== "done") throw refused(place, reply.outcome);
      return RELEASES[reply.value] ?? "not-held";
    },

    async tryReleaseAll(ids, request, timeoutMs) {
      const args = { ids: ids.join(""), keepMs, ...publication };
      const keys = requested(request);
      const reply = await ask(caller, interopRedissonExpirableSemaphoreTryReleaseAll, keys, args, timeoutMs);
      if (reply.outcome !== "done") throw refused(place, reply.outcome);
      return reply.value === 1;
    },

    async updateLease(id, leaseMs, timeoutMs) {
      const args = { id, leaseMs, ...publication };
      const reply = await ask(
        caller,
        interopRedissonExpirableSemaphoreUpdateLease,
        { permits, timeout },
        args,
        timeoutMs,
      );
      if (reply.outcome !== "done") throw refused(place, reply.outcome);
      return reply.value === 1;
    },

    async leaseTime(id, timeoutMs) {
      const reply = await ask(caller, interopRedissonExpirableSemaphoreLeaseTime, { timeout }, { id }, timeoutMs);
      if (reply.outcome === "held") return reply.value;
      return reply.outcome === "endless" ? Infinity : undefined;
    },
  };
  return protocol;
}

import type { Model } from "../checker/index.js";
import type { Operation } from "../history/records.js";
import { expiredDownTo, type Share, sharesKey, total, withShare } from "./holders.js";
import {
  EXPIRY,
  type ExpiryRules,
  eitherLease,
  extendedLease,
  mayBeOver,
  mayStillRun,
  serverLease,
} from "./server-lease.js";
import { unknownVerb } from "./timed.js";

/** The rules that a semaphore must follow. */
export interface PermitRules {
  readonly limit: number;
  /** Whether a small request may pass a larger one that waits. If not, it may be refused although permits are free. */
  readonly overtakes?: boolean;
  readonly expiry?: ExpiryRules;
}

/** The state of a semaphore between two operations. */
export interface Permits {
  readonly limit: number;
  readonly shares: readonly Share[];
}

/**
 * At most `limit` permits are held. Each owner may hold several.
 *
 * Based on "acquired permits" of the Hazelcast workload of jepsen-io/jepsen, plus leases, weights and a limit that can
 * change. A release by an owner that holds nothing must be refused.
 */
export function permits(rules: PermitRules): Model<Permits, Operation> {
  const { limit, overtakes = false, expiry = EXPIRY } = rules;

  const mine = ({ shares }: Permits, { owner }: Operation): Share | undefined =>
    shares.find((share) => share.owner === owner);

  function acquire(state: Permits, operation: Operation): Permits[] {
    const wanted = operation.args.permits ?? 1;
    return expiredDownTo(state.shares, state.limit - wanted, operation, expiry).map((shares) => {
      const before = shares.find(({ owner }) => owner === operation.owner);
      const fresh = serverLease(operation, expiry);
      const lease = before === undefined ? fresh : eitherLease(before.lease, fresh);
      const share = { owner: operation.owner, count: (before?.count ?? 0) + wanted, lease };
      return { ...state, shares: withShare(shares, share) };
    });
  }

  function refuseAcquire(state: Permits, operation: Operation): Permits[] {
    if (operation.refusal === "gave-up") return [state, ...acquire(state, operation)];
    const wanted = operation.args.permits ?? 1;
    const running = state.shares.filter(({ lease }) => mayStillRun(lease, operation, expiry));
    const isFull = total(running) + wanted > state.limit;
    return isFull || (!overtakes && running.length > 0) ? [state] : [];
  }

  /** Replaces the owner's share with the result of `become`; if that is undefined, the step is illegal. */
  function change(state: Permits, operation: Operation, become: (share: Share) => Share | undefined): Permits[] {
    const share = mine(state, operation);
    if (share === undefined || !mayStillRun(share.lease, operation, expiry)) return [];
    const next = become(share);
    return next === undefined ? [] : [{ ...state, shares: withShare(state.shares, next) }];
  }

  function refuseOwner(state: Permits, operation: Operation): Permits[] {
    const share = mine(state, operation);
    if (share === undefined || share.count < (operation.args.permits ?? 1)) return [state];
    if (!mayBeOver(share.lease, operation, expiry)) return [];
    return [{ ...state, shares: withShare(state.shares, { ...share, count: 0 }) }];
  }

  return {
    name: "permits",
    initial: { limit, shares: [] },
    key: ({ limit: now, shares }) => `${now}\n${sharesKey(shares)}`,
    step(state, operation) {
      const isRefused = operation.outcome === "no";
      if (isRefused && operation.refusal === "not-sent") return [state];
      switch (operation.verb) {
        case "acquire":
          return isRefused ? refuseAcquire(state, operation) : acquire(state, operation);
        case "extend":
          if (isRefused) return refuseOwner(state, { ...operation, args: { ...operation.args, permits: 1 } });
          return change(state, operation, (share) => ({
            ...share,
            lease: extendedLease(share.lease, serverLease(operation, expiry)),
          }));
        case "release": {
          if (isRefused) return refuseOwner(state, operation);
          const returned = operation.args.permits ?? 1;
          return change(state, operation, (share) =>
            share.count < returned ? undefined : { ...share, count: share.count - returned },
          );
        }
        case "force-release":
          if (isRefused) return [state];
          return [{ ...state, shares: state.shares.filter(({ owner }) => owner !== operation.owner) }];
        case "resize":
          return isRefused ? [state] : [{ ...state, limit: operation.args.permits ?? state.limit }];
        default:
          return unknownVerb("permits", operation);
      }
    },
  };
}

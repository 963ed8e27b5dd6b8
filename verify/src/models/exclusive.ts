/**
 * The state machine of the five models of a lock that one owner holds at a time.
 *
 * Five models of the Hazelcast workload of jepsen-io/jepsen (hazelcast/src/jepsen/hazelcast.clj) differ only in what
 * they compare: the owner, the count, the token. This code adds leases that end (server-lease.ts), refusals that need
 * a reason, and extend.
 */
import type { Model } from "../checker/index.js";
import type { Operation } from "../history/records.js";
import type { ServerLease } from "./server-lease.js";
import {
  EXPIRY,
  type ExpiryRules,
  eitherLease,
  extendedLease,
  leaseKey,
  mayBeOver,
  mayStillRun,
  serverLease,
} from "./server-lease.js";
import { type JudgedOperation, unknownVerb } from "./timed.js";

/** What a model compares. */
export interface ExclusiveRules {
  readonly name: string;
  /** False treats all callers as one, so that only held and free are distinguished. */
  readonly comparesOwners: boolean;
  /** How many times the owner may hold it at the same time. */
  readonly maxHold: number;
  readonly comparesTokens: boolean;
  readonly expiry: ExpiryRules;
}

/** The holder of an exclusive lock. */
export interface Holding {
  readonly owner: string;
  readonly count: number;
  /** Null if unknown. */
  readonly token: number | null;
  readonly lease: ServerLease;
}

/** The state of an exclusive lock between two operations. */
export interface Exclusive {
  readonly holding: Holding | null;
  /** Highest token seen so far, 0 before the first. */
  readonly highest: number;
}

/** The model of an exclusive lock with these rules. */
export function exclusive(rules: ExclusiveRules): Model<Exclusive, JudgedOperation> {
  return {
    name: rules.name,
    initial: { holding: null, highest: 0 },
    // Without owners, a different caller than the holder may release.
    step: (state, operation) => step(rules, state, rules.comparesOwners ? operation : { ...operation, isKept: false }),
    key: ({ holding, highest }) =>
      holding === null
        ? `${highest}`
        : `${highest} ${holding.count} ${holding.token} ${leaseKey(holding.lease)} ${holding.owner}`,
  };
}

/** Rules with defaults for everything that is not given. */
export function rulesOf(name: string, rules: Partial<Omit<ExclusiveRules, "name">>): ExclusiveRules {
  return { name, comparesOwners: true, maxHold: 1, comparesTokens: false, expiry: EXPIRY, ...rules };
}

function step(rules: ExclusiveRules, state: Exclusive, operation: JudgedOperation): readonly Exclusive[] {
  if (operation.outcome === "no" && operation.refusal === "not-sent") return [state];
  switch (operation.verb) {
    case "acquire":
      return operation.outcome === "no" ? refuseAcquire(rules, state, operation) : acquire(rules, state, operation);
    case "extend":
      return operation.outcome === "no" ? refuseOwner(rules, state, operation) : extend(rules, state, operation);
    case "release":
      return operation.outcome === "no" ? refuseOwner(rules, state, operation) : release(rules, state, operation);
    case "force-release":
      return operation.outcome === "no" ? [state] : [{ ...state, holding: null }];
    default:
      return unknownVerb(rules.name, operation);
  }
}

function acquire(rules: ExclusiveRules, state: Exclusive, operation: JudgedOperation): Exclusive[] {
  const { holding } = state;
  const next: Exclusive[] = [];
  if (holding === null || mayBeOver(holding.lease, operation, rules.expiry))
    next.push(...first(rules, state, operation));
  if (holding !== null && isOwn(rules, holding, operation) && holding.count < rules.maxHold)
    next.push(...again(rules, state, holding, operation));
  return next;
}

function first(rules: ExclusiveRules, { highest }: Exclusive, operation: JudgedOperation): Exclusive[] {
  const token = rules.comparesTokens ? operation.token : null;
  if (token !== null && token <= highest) return [];
  const lease = serverLease(operation, rules.expiry);
  return [{ holding: { owner: ownerOf(rules, operation), count: 1, token, lease }, highest: token ?? highest }];
}

function again(
  rules: ExclusiveRules,
  { highest }: Exclusive,
  holding: Holding,
  operation: JudgedOperation,
): Exclusive[] {
  const token = rules.comparesTokens ? operation.token : null;
  const isSame = token === null || token === holding.token || (holding.token === null && token > highest);
  if (!isSame) return [];
  // An implementation may or may not restart the lease at a nested acquire.
  const lease = eitherLease(holding.lease, serverLease(operation, rules.expiry));
  const count = holding.count + 1;
  const known = token ?? holding.token;
  return [{ holding: { ...holding, count, token: known, lease }, highest: Math.max(highest, known ?? 0) }];
}

/** Refused because another caller had it. A waiter that gave up may have held it briefly and released it. */
function refuseAcquire(rules: ExclusiveRules, state: Exclusive, operation: JudgedOperation): Exclusive[] {
  if (operation.refusal === "gave-up") return [state, ...acquire(rules, state, { ...operation, token: null })];
  const { holding } = state;
  if (holding === null || !mayStillRun(holding.lease, operation, rules.expiry)) return [];
  return isOwn(rules, holding, operation) && rules.comparesOwners && holding.count < rules.maxHold ? [] : [state];
}

function extend(rules: ExclusiveRules, state: Exclusive, operation: JudgedOperation): Exclusive[] {
  const { holding, highest } = state;
  if (!isHeldBy(rules, holding, operation)) return [];
  const token = rules.comparesTokens ? operation.token : null;
  const isSame = token === null || token === holding.token || (holding.token === null && token > highest);
  if (!isSame) return [];
  const lease = extendedLease(holding.lease, serverLease(operation, rules.expiry));
  const known = token ?? holding.token;
  return [{ holding: { ...holding, token: known, lease }, highest: Math.max(highest, known ?? 0) }];
}

function release(rules: ExclusiveRules, state: Exclusive, operation: JudgedOperation): Exclusive[] {
  const { holding } = state;
  if (!isHeldBy(rules, holding, operation)) return [];
  if (holding.count === 1) return [{ ...state, holding: null }];
  return [{ ...state, holding: { ...holding, count: holding.count - 1 } }];
}

/** Refused because the caller no longer held it, or never did. */
function refuseOwner(rules: ExclusiveRules, state: Exclusive, operation: JudgedOperation): Exclusive[] {
  const { holding } = state;
  if (holding === null || !rules.comparesOwners || !isOwn(rules, holding, operation)) return [state];
  return mayBeOver(holding.lease, operation, rules.expiry) ? [{ ...state, holding: null }] : [];
}

function isHeldBy(rules: ExclusiveRules, holding: Holding | null, operation: JudgedOperation): holding is Holding {
  return holding !== null && isOwn(rules, holding, operation) && mayStillRun(holding.lease, operation, rules.expiry);
}

function isOwn(rules: ExclusiveRules, { owner }: Holding, operation: JudgedOperation): boolean {
  return owner === ownerOf(rules, operation);
}

function ownerOf({ comparesOwners }: ExclusiveRules, { owner }: Operation): string {
  return comparesOwners ? owner : "";
}

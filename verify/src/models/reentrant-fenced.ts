import type { Model } from "../checker/index.js";
import type { Operation } from "../history/records.js";
import { type Exclusive, exclusive, rulesOf } from "./exclusive.js";
import { EXPIRY, type ExpiryRules } from "./server-lease.js";

/**
 * Re-entrant, with a token above all before it at the first hold, and the same token at every further one.
 *
 * After "reentrant fenced mutex" of the Hazelcast workload of jepsen-io/jepsen. While the token of the first hold is
 * unknown, a later one may tell it.
 */
export function reentrantFenced(maxHold: number, expiry: ExpiryRules = EXPIRY): Model<Exclusive, Operation> {
  return exclusive(rulesOf("reentrant-fenced", { maxHold, comparesTokens: true, expiry }));
}

import type { Model } from "../checker/index.js";
import type { Operation } from "../history/records.js";
import { type Exclusive, exclusive, rulesOf } from "./exclusive.js";
import { EXPIRY, type ExpiryRules } from "./server-lease.js";

/**
 * A re-entrant mutex. The first hold has a token above all earlier ones, and nested holds have the same token.
 *
 * Based on "reentrant fenced mutex" of the Hazelcast workload of jepsen-io/jepsen. If the token of the first hold is
 * unknown, a nested hold may reveal it.
 */
export function reentrantFenced(maxHold: number, expiry: ExpiryRules = EXPIRY): Model<Exclusive, Operation> {
  return exclusive(rulesOf("reentrant-fenced", { maxHold, comparesTokens: true, expiry }));
}

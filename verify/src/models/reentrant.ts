import type { Model } from "../checker/index.js";
import type { Operation } from "../history/records.js";
import { type Exclusive, exclusive, rulesOf } from "./exclusive.js";
import { EXPIRY, type ExpiryRules } from "./server-lease.js";

/**
 * One owner at a time; it may acquire up to `maxHold` times and must release as often.
 *
 * Based on "reentrant mutex" of the Hazelcast workload of jepsen-io/jepsen. When the lease ends, all holds end.
 */
export function reentrant(maxHold: number, expiry: ExpiryRules = EXPIRY): Model<Exclusive, Operation> {
  return exclusive(rulesOf("reentrant", { maxHold, expiry }));
}

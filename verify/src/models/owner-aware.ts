import type { Model } from "../checker/index.js";
import type { Operation } from "../history/records.js";
import { type Exclusive, exclusive, rulesOf } from "./exclusive.js";
import { EXPIRY, type ExpiryRules } from "./server-lease.js";

/**
 * One owner at a time: only the owner may extend and release, and it may not acquire again.
 *
 * Based on "owner-aware mutex" of the Hazelcast workload of jepsen-io/jepsen, plus extend.
 */
export function ownerAware(expiry: ExpiryRules = EXPIRY): Model<Exclusive, Operation> {
  return exclusive(rulesOf("owner-aware", { expiry }));
}

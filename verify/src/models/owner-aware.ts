import type { Model } from "../checker/index.js";
import type { Operation } from "../history/records.js";
import { type Exclusive, exclusive, rulesOf } from "./exclusive.js";
import { EXPIRY, type ExpiryRules } from "./server-lease.js";

/**
 * One owner at a time: only it extends and releases, and not even it acquires again.
 *
 * After "owner-aware mutex" of the Hazelcast workload of jepsen-io/jepsen, with extend.
 */
export function ownerAware(expiry: ExpiryRules = EXPIRY): Model<Exclusive, Operation> {
  return exclusive(rulesOf("owner-aware", { expiry }));
}

import type { Model } from "../checker/index.js";
import type { Operation } from "../history/records.js";
import { type Exclusive, exclusive, rulesOf } from "./exclusive.js";
import { EXPIRY, type ExpiryRules } from "./server-lease.js";

/**
 * Held or free, without its holder: an acquire needs a free lock, a release a held one.
 *
 * Based on "mutex" of the Hazelcast workload of jepsen-io/jepsen. A refused release proves nothing here, because the
 * reason is its owner.
 */
export function mutex(expiry: ExpiryRules = EXPIRY): Model<Exclusive, Operation> {
  return exclusive(rulesOf("mutex", { comparesOwners: false, expiry }));
}

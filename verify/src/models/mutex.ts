import type { Model } from "../checker/index.js";
import type { Operation } from "../history/records.js";
import { type Exclusive, exclusive, rulesOf } from "./exclusive.js";
import { EXPIRY, type ExpiryRules } from "./server-lease.js";

/**
 * Held or free, whoever holds it: an acquire needs it free, a release needs it held.
 *
 * After "mutex" of the Hazelcast workload of jepsen-io/jepsen. A refused release says nothing here, since it is refused
 * for whose it is.
 */
export function mutex(expiry: ExpiryRules = EXPIRY): Model<Exclusive, Operation> {
  return exclusive(rulesOf("mutex", { comparesOwners: false, expiry }));
}

import type { Model } from "../checker/index.js";
import type { Operation } from "../history/records.js";
import { type Exclusive, exclusive, rulesOf } from "./exclusive.js";
import { EXPIRY, type ExpiryRules } from "./server-lease.js";

/**
 * One owner at a time; each grant has a token above all earlier ones, and an extend keeps the token.
 *
 * Based on "fenced mutex" of the Hazelcast workload of jepsen-io/jepsen. An unknown token may have any value.
 */
export function fenced(expiry: ExpiryRules = EXPIRY): Model<Exclusive, Operation> {
  return exclusive(rulesOf("fenced", { comparesTokens: true, expiry }));
}

import type { Model } from "../checker/index.js";
import type { Operation } from "../history/records.js";
import { type Exclusive, exclusive, rulesOf } from "./exclusive.js";
import { EXPIRY, type ExpiryRules } from "./server-lease.js";

/**
 * One owner at a time, each grant with a token above all before it; an extend keeps the token.
 *
 * After "fenced mutex" of the Hazelcast workload of jepsen-io/jepsen. An unknown token is legal with any value.
 */
export function fenced(expiry: ExpiryRules = EXPIRY): Model<Exclusive, Operation> {
  return exclusive(rulesOf("fenced", { comparesTokens: true, expiry }));
}

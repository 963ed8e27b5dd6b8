/**
 * Ids of permits that expire: 16 unique bytes each, written as 32 hexadecimal digits.
 *
 * The first id of a claim is its owner id, so that `inspect` shows the holder under the `owner` of its lease. The other
 * ids are derived from it. So a repeated request contains the same ids, and nothing has to be stored.
 */
import { createHash } from "node:crypto";
import { type Claim, show } from "holdfast/internal";

const ID = /^[0-9a-f]{32}$/;

/** Returns the id of the first permit of a request. @param request  a string that identifies the request uniquely */
export function firstPermitId(request: string): string {
  return digested(request);
}

/** Returns the ids of all permits of a claim. The first one is its owner id. */
export function permitIdsOf({ owner, amount }: Pick<Claim, "owner" | "amount">): string[] {
  return Array.from({ length: amount }, (_, i) => (i === 0 ? owner : digested(`${owner}#${i}`)));
}

function digested(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 32);
}

/** Checks a permit id and returns it in lower case. @throws TypeError, RangeError  not 32 hexadecimal digits */
export function checkPermitId(id: unknown): string {
  if (typeof id !== "string") {
    throw new TypeError(`a permit id must be a string of 32 hexadecimal digits; got ${show(id)}`);
  }
  const digits = id.toLowerCase();
  if (!ID.test(digits)) throw new RangeError(`a permit id must be 32 hexadecimal digits; got ${show(id)}`);
  return digits;
}

/**
 * Ids of permits that expire: 16 bytes each, that nobody else has used, as 32 hexadecimal digits.
 *
 * The first of a claim is its owner id, so that the server shows a holder by the name that its lease has; the others are made
 * from it. So a request that is sent a second time names the same permits, and nothing has to be kept to know them.
 */
import { createHash } from "node:crypto";
import { type Claim, show } from "../../internal.js";

const ID = /^[0-9a-f]{32}$/;

/** The first permit of a request, by what names the request and no other. */
export function firstPermitId(request: string): string {
  return digested(request);
}

/** All permits of a claim, the first one first. */
export function permitIdsOf({ owner, amount }: Pick<Claim, "owner" | "amount">): string[] {
  return Array.from({ length: amount }, (_, i) => (i === 0 ? owner : digested(`${owner}#${i}`)));
}

function digested(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 32);
}

/** @throws TypeError, RangeError  unless it is the id of a permit, as Redisson gives it: 32 hexadecimal digits */
export function checkPermitId(id: unknown): string {
  if (typeof id !== "string") {
    throw new TypeError(`a permit id must be a string of 32 hexadecimal digits; got ${show(id)}`);
  }
  const digits = id.toLowerCase();
  if (!ID.test(digits)) throw new RangeError(`a permit id must be 32 hexadecimal digits; got ${show(id)}`);
  return digits;
}

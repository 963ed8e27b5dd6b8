/** Owner ids: made here, and read here. The hand-off script reads the same four fields. */
import type { Claim } from "./steps.js";

/** A new claim. Its owner id carries what a hand-off and an operator need, so that neither reads another key. */
export function newClaim(clientId: string, number: number, leaseMs: number, block: number, label: string): Claim {
  const owner = `${clientId}/${number}/${leaseMs}/${block}`;
  // Percent-encoding leaves only ASCII letters, digits and -_.!~*'() in a label.
  return { owner: label === "" ? owner : `${owner}/${encodeURIComponent(label)}`, number, leaseMs, block };
}

/** What an owner id tells; undefined if another kind of client wrote it. */
export function parseOwner(
  owner: string,
): { readonly clientId: string; readonly label: string | undefined } | undefined {
  const match = /^([\w-]+)\/\d+\/\d+\/\d+(?:\/([^/]*))?$/.exec(owner);
  if (match?.[1] === undefined) return undefined;
  return { clientId: match[1], label: match[2] === undefined ? undefined : decodeLabel(match[2]) };
}

function decodeLabel(label: string): string {
  try {
    return decodeURIComponent(label);
  } catch {
    return label; // not written by us; shown as it is
  }
}

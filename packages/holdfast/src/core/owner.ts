/** Owner ids: made here, and read here. The hand-off script reads the same four fields. */
import type { Claim } from "./steps.js";

/** A new claim. Its owner id carries what a hand-off and an operator need, so that neither reads another key. */
export function newClaim(clientId: string, number: number, leaseMs: number, amount: number, label: string): Claim {
  const owner = `${clientId}/${number}/${leaseMs}/${amount}`;
  // Percent-encoding leaves only ASCII letters, digits and -_.!~*'() in a label.
  return { owner: label === "" ? owner : `${owner}/${encodeURIComponent(label)}`, number, leaseMs, amount };
}

/** What an owner id tells; undefined if another kind of client wrote it. */
export function parseOwner(
  owner: string,
): { readonly clientId: string; readonly amount: number; readonly label: string | undefined } | undefined {
  const match = /^([\w-]+)\/\d+\/\d+\/(\d+)(?:\/([^/]*))?$/.exec(owner);
  if (match?.[1] === undefined) return undefined;
  return {
    clientId: match[1],
    amount: Number(match[2]),
    label: match[3] === undefined ? undefined : decodeLabel(match[3]),
  };
}

function decodeLabel(label: string): string {
  try {
    return decodeURIComponent(label);
  } catch {
    return label; // not written by us; shown as it is
  }
}

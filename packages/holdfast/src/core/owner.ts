/** Owner ids: made here, and read here. The hand-off script reads the same four fields. */
import type { Claim } from "./steps.js";

/** A new claim. Its owner id carries what a hand-off and an operator need, so that neither reads another key. */
export function newClaim(clientId: string, number: number, leaseMs: number, amount: number, label: string): Claim {
  return new OwnClaim(clientId, number, leaseMs, amount, label);
}

/** Makes the id when it is asked for: whoever holds many leases need not keep as many texts. */
class OwnClaim implements Claim {
  readonly number: number;
  readonly leaseMs: number;
  readonly amount: number;
  readonly #clientId: string;
  readonly #label: string;

  constructor(clientId: string, number: number, leaseMs: number, amount: number, label: string) {
    this.number = number;
    this.leaseMs = leaseMs;
    this.amount = amount;
    this.#clientId = clientId;
    this.#label = label;
  }

  get owner(): string {
    const owner = `${this.#clientId}/${this.number}/${this.leaseMs}/${this.amount}`;
    // Percent-encoding leaves only ASCII letters, digits and -_.!~*'() in a label.
    return this.#label === "" ? owner : `${owner}/${encodeURIComponent(this.#label)}`;
  }
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

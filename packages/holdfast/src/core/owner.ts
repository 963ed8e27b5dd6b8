/** Owner ids: made here, and read here. The hand-off script reads the same fields. */
import type { Pause } from "./error-facts.js";
import type { Claim } from "./protocol.js";

/** Longest lease of a grant by message before the holder confirms it, in ms: what a frozen process costs the others. */
export const HAND_OFF_MS = 3_000;

/** What a new claim is made of. */
export interface ClaimFacts {
  readonly clientId: string;
  readonly number: number;
  readonly leaseMs: number;
  readonly amount: number;
  readonly label: string;
  /** See `Claim.handOffMs`. */
  readonly handOffMs: number | undefined;
}

/** A new claim. Its owner id carries what a hand-off and an operator need, so that neither reads another key. */
export function newClaim(facts: ClaimFacts): Claim {
  return new OwnClaim(facts);
}

/** Makes the id when it is asked for: whoever holds many leases need not keep as many texts. */
class OwnClaim implements Claim {
  readonly number: number;
  readonly leaseMs: number;
  readonly amount: number;
  readonly handOffMs: number | undefined;
  readonly #clientId: string;
  readonly #label: string;

  constructor({ clientId, number, leaseMs, amount, label, handOffMs }: ClaimFacts) {
    this.number = number;
    this.leaseMs = leaseMs;
    this.amount = amount;
    this.handOffMs = handOffMs;
    this.#clientId = clientId;
    this.#label = label;
  }

  get owner(): string {
    const owner = `${this.#clientId}/${this.number}/${this.leaseMs}/${this.amount}`;
    // Percent-encoding leaves only ASCII letters, digits and -_.!~*'() in a label, so a semicolon ends it.
    const label = encodeURIComponent(this.#label);
    if (this.handOffMs !== undefined) return `${owner}/${label};${this.handOffMs}`;
    return label === "" ? owner : `${owner}/${label}`;
  }
}

/** What an owner id tells; undefined if another kind of client wrote it. */
export function parseOwner(
  owner: string,
): { readonly clientId: string; readonly amount: number; readonly label: string | undefined } | undefined {
  const match = /^([\w-]+)\/\d+\/\d+\/(\d+)(?:\/([^/;]*)(?:;\d+)?)?$/.exec(owner);
  if (match?.[1] === undefined) return undefined;
  const [, clientId, amount, label = ""] = match;
  return { clientId, amount: Number(amount), label: label === "" ? undefined : decodeWords(label) };
}

/** Ends of pauses that end when somebody resumes, in ms since 1970: no number says never, and keys want one. */
export const NEVER_MS = 9_000_000_000_000;

/** What the text of a pause tells; undefined if it is another text. */
export function parsePause(owner: string): Pause | undefined {
  const match = /^pause\/(\d+)\/(\d+)\/\d+\/[^/]*\/([^/]*)\/([^/]*)$/.exec(owner);
  if (match === null) return undefined;
  const [, since, until, by = "", label = ""] = match;
  const untilAtMs = Number(until) >= NEVER_MS ? undefined : Number(until);
  return { by: decodeWords(by), label: decodeWords(label), sinceAtMs: Number(since), untilAtMs, owner };
}

/** Percent-encoded words of people, as they stand in owner ids and messages; what was not written by us is shown as it is. */
export function decodeWords(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/**
 * Limits how many tokens may be guessed, by address and in total. It is kept in the memory of this process, and bounded.
 *
 * Only different wrong tokens count. All users behind one proxy share its address, and one script with an old token repeats
 * it. The right token is never refused: it has 16 characters or more, so it is not found by guessing.
 */
import { createHash } from "node:crypto";

/** Wrong tokens that one address may send in a window. */
const EACH = 5;
/** And all together, as from a botnet: enough for a team that has just been given a new token. */
const ALL = 100;
const WINDOW_MS = 60_000;
const MOST_ADDRESSES = 10_000;

interface Count {
  failures: number;
  /** The wrong tokens that count already, as digests. */
  readonly tokens: Set<string>;
  endsAtMs: number;
}

/** See the file header. The clock is handed in, so that a test need not wait. */
export class Attempts {
  readonly #now: () => number;
  readonly #byAddress = new Map<string, Count>();
  #all: Count = { failures: 0, tokens: new Set(), endsAtMs: 0 };

  constructor(now: () => number) {
    this.#now = now;
  }

  /** In how many ms this address may try again; 0: now. */
  blockedForMs(address: string): number {
    const nowMs = this.#now();
    const own = this.#byAddress.get(address);
    const ownMs = own !== undefined && own.failures >= EACH ? own.endsAtMs - nowMs : 0;
    const allMs = this.#all.failures >= ALL ? this.#all.endsAtMs - nowMs : 0;
    return Math.max(0, ownMs, allMs);
  }

  /** A wrong token came from there. */
  failed(address: string, token: string): void {
    const nowMs = this.#now();
    const begun = (count: Count | undefined): Count =>
      count === undefined || count.endsAtMs <= nowMs
        ? { failures: 0, tokens: new Set(), endsAtMs: nowMs + WINDOW_MS }
        : count;
    const own = begun(this.#byAddress.get(address));
    const digest = createHash("sha256").update(token).digest("base64");
    if (own.tokens.has(digest)) return;
    // Beyond the limit, further tokens are counted but not kept.
    if (own.failures < EACH) own.tokens.add(digest);
    own.failures += 1;
    this.#all = begun(this.#all);
    this.#all.failures += 1;
    this.#byAddress.delete(address);
    this.#byAddress.set(address, own);
    // The oldest goes first; whoever has so many addresses is stopped by the common limit.
    for (const oldest of this.#byAddress.keys()) {
      if (this.#byAddress.size <= MOST_ADDRESSES) break;
      this.#byAddress.delete(oldest);
    }
  }

  /** The right token came from there. */
  succeeded(address: string): void {
    this.#byAddress.delete(address);
  }
}

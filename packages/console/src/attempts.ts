/**
 * Limits how many tokens can be guessed, per address and in total. The counts are kept in this process's memory, with a
 * bounded size.
 *
 * Only distinct wrong tokens count, because all users behind a proxy share its address and a script may repeat an old
 * token. The correct token is never refused: it has at least 16 characters, so it cannot be found by guessing.
 */
import { createHash } from "node:crypto";

/** Wrong tokens allowed per address and window. */
const EACH = 5;
/**
 * Wrong tokens allowed per window from all addresses, as a limit on botnets. It is high enough for a team whose token
 * was just replaced.
 */
const ALL = 100;
const WINDOW_MS = 60_000;
const MOST_ADDRESSES = 10_000;

interface Count {
  failures: number;
  /** Digests of the wrong tokens counted so far. */
  readonly tokens: Set<string>;
  endsAtMs: number;
}

/** Counts wrong tokens. The clock is a parameter so that tests need not wait. */
export class Attempts {
  readonly #now: () => number;
  readonly #byAddress = new Map<string, Count>();
  #all: Count = { failures: 0, tokens: new Set(), endsAtMs: 0 };

  constructor(now: () => number) {
    this.#now = now;
  }

  /** How long this address must wait before the next attempt, in ms; 0 if it need not wait. */
  blockedForMs(address: string): number {
    const nowMs = this.#now();
    const own = this.#byAddress.get(address);
    const ownMs = own !== undefined && own.failures >= EACH ? own.endsAtMs - nowMs : 0;
    const allMs = this.#all.failures >= ALL ? this.#all.endsAtMs - nowMs : 0;
    return Math.max(0, ownMs, allMs);
  }

  /** Records a wrong token from this address. */
  failed(address: string, token: string): void {
    const nowMs = this.#now();
    const begun = (count: Count | undefined): Count =>
      count === undefined || count.endsAtMs <= nowMs
        ? { failures: 0, tokens: new Set(), endsAtMs: nowMs + WINDOW_MS }
        : count;
    const own = begun(this.#byAddress.get(address));
    const digest = createHash("sha256").update(token).digest("base64");
    if (own.tokens.has(digest)) return;
    // Beyond the limit, further tokens are counted but not stored.
    if (own.failures < EACH) own.tokens.add(digest);
    own.failures += 1;
    this.#all = begun(this.#all);
    this.#all.failures += 1;
    this.#byAddress.delete(address);
    this.#byAddress.set(address, own);
    // Evicts the oldest address. A client with this many addresses is stopped by the total limit.
    for (const oldest of this.#byAddress.keys()) {
      if (this.#byAddress.size <= MOST_ADDRESSES) break;
      this.#byAddress.delete(oldest);
    }
  }

  /** Records that the correct token came from this address. */
  succeeded(address: string): void {
    this.#byAddress.delete(address);
  }
}

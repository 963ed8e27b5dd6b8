/** Limits how often a token may be guessed, by address and altogether; in this process's memory, and bounded. */

/** Wrong tokens that one address may send in a window. */
const EACH = 5;
/** And all together, as from a botnet: enough for a team that has just been given a new token. */
const ALL = 100;
const WINDOW_MS = 60_000;
const MOST_ADDRESSES = 10_000;

interface Count {
  failures: number;
  endsAtMs: number;
}

/** See the file header. The clock is handed in, so that a test need not wait. */
export class Attempts {
  readonly #now: () => number;
  readonly #byAddress = new Map<string, Count>();
  #all: Count = { failures: 0, endsAtMs: 0 };

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
  failed(address: string): void {
    const nowMs = this.#now();
    const begun = (count: Count | undefined): Count =>
      count === undefined || count.endsAtMs <= nowMs ? { failures: 0, endsAtMs: nowMs + WINDOW_MS } : count;
    this.#all = begun(this.#all);
    this.#all.failures += 1;
    const own = begun(this.#byAddress.get(address));
    own.failures += 1;
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

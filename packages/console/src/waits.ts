/**
 * Records when the console first saw each waiter of the elections and of the locks shown in detail, for queues that do
 * not store when a waiter joined.
 */

/** The first-seen times of current waiters. */
export class Waits {
  readonly #seen = new Map<string, Map<string, number>>();

  /** Discards all locks except these and the elections. If `keys` is empty, discards the elections too. */
  keep(keys: readonly string[]): void {
    const wanted = new Set(keys);
    for (const key of this.#seen.keys()) if (!wanted.has(key) && !key.startsWith("election:")) this.#seen.delete(key);
    if (keys.length === 0) this.#seen.clear();
  }

  /** Records the current waiters of a lock. @returns a function that gives the first-seen time of an owner */
  see(key: string, owners: readonly string[], nowMs: number): (owner: string) => number | undefined {
    const before = this.#seen.get(key);
    const now = new Map(owners.map((owner) => [owner, before?.get(owner) ?? nowMs]));
    if (now.size === 0) this.#seen.delete(key);
    else this.#seen.set(key, now);
    return (owner) => now.get(owner);
  }
}

/** Since when the console has seen each waiter of the locks that are looked at in detail: queues keep order and no times. */

/** See the file header. Holds what waits now and nothing else. */
export class Waits {
  readonly #seen = new Map<string, Map<string, number>>();

  /** Forgets all locks but these. */
  keep(keys: readonly string[]): void {
    const wanted = new Set(keys);
    for (const key of this.#seen.keys()) if (!wanted.has(key) && !key.startsWith("election:")) this.#seen.delete(key);
    if (keys.length === 0) this.#seen.clear();
  }

  /** Those who wait for that lock now. @returns since when each was seen */
  see(key: string, owners: readonly string[], nowMs: number): (owner: string) => number | undefined {
    const before = this.#seen.get(key);
    const now = new Map(owners.map((owner) => [owner, before?.get(owner) ?? nowMs]));
    if (now.size === 0) this.#seen.delete(key);
    else this.#seen.set(key, now);
    return (owner) => now.get(owner);
  }
}

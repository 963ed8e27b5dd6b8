import type { Lease, ReleaseEvent } from "holdfast";

/** What the releases of a run came to, by their events. */
export class ReleaseEvents {
  readonly #seen = new Map<string, ReleaseEvent["outcome"]>();
  readonly #waiting = new Map<string, (outcome: ReleaseEvent["outcome"]) => void>();

  /** Takes note of one. */
  heard({ owner, token, outcome }: ReleaseEvent): void {
    const key = `${owner} ${token}`;
    const resolve = this.#waiting.get(key);
    this.#waiting.delete(key);
    if (resolve === undefined) this.#seen.set(key, outcome);
    else resolve(outcome);
  }

  /** Resolves to what became of the release of that lease. To be asked once. */
  of({ owner, token }: Lease): Promise<ReleaseEvent["outcome"]> {
    const key = `${owner} ${token}`;
    const seen = this.#seen.get(key);
    this.#seen.delete(key);
    if (seen !== undefined) return Promise.resolve(seen);
    return new Promise((resolve) => this.#waiting.set(key, resolve));
  }
}

import type { Lease, ReleaseEvent } from "holdfast";

/** The outcomes of releases, from their events. */
export class ReleaseEvents {
  readonly #seen = new Map<string, ReleaseEvent["outcome"]>();
  readonly #waiting = new Map<string, (outcome: ReleaseEvent["outcome"]) => void>();

  /** Records one event. */
  heard({ owner, token, outcome }: ReleaseEvent): void {
    const key = `${owner} ${token}`;
    const resolve = this.#waiting.get(key);
    this.#waiting.delete(key);
    if (resolve === undefined) this.#seen.set(key, outcome);
    else resolve(outcome);
  }

  /** Resolves to the outcome of the release of that lease. Call it once. */
  of({ owner, token }: Lease): Promise<ReleaseEvent["outcome"]> {
    const key = `${owner} ${token}`;
    const seen = this.#seen.get(key);
    this.#seen.delete(key);
    if (seen !== undefined) return Promise.resolve(seen);
    return new Promise((resolve) => this.#waiting.set(key, resolve));
  }
}

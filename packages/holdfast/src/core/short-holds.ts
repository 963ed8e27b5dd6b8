/**
 * Which locks this process last held for a short time.
 *
 * The holder of a grant by message has to confirm it (docs/adr/130). For short sections that would be one more message each, so where
 * the last hold of the lock was short, the confirmation waits until this one turns out to be longer.
 */

/** Sections that end before that need no confirmation, in ms. */
export const SHORT_HOLD_MS = 250;

/** How many locks are remembered: those of which nothing is known are confirmed immediately, which is always safe. */
const REMEMBERED = 10_000;

/** See the file header. One for each Holdfast; only locks that were granted by message are entered. */
export class ShortHolds {
  readonly #keys = new Set<string>();

  /** Whether the last hold of that lock here was short. */
  has(key: string): boolean {
    return this.#keys.has(key);
  }

  /** A hold of that lock has ended after `heldMs`. */
  ended(key: string, heldMs: number): void {
    if (heldMs >= SHORT_HOLD_MS) {
      this.#keys.delete(key);
      return;
    }
    if (this.#keys.has(key)) return;
    this.#keys.add(key);
    const [oldest] = this.#keys;
    if (this.#keys.size > REMEMBERED && oldest !== undefined) this.#keys.delete(oldest);
  }
}

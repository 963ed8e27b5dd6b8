/**
 * What the locks of the demo protect: payments, a slow gateway, and a feed that only one worker may pull.
 *
 * The shop does not rely on the locks: it counts every action itself. Workers call it directly, or through messages
 * from separate processes. The shop treats both in the same way.
 */

/** The actions that a worker can perform on the shop. */
export interface Shop {
  /** Whether the payment already has an order. */
  hasOrder(payment: string): Promise<boolean>;
  /** Charges the customer, which takes a while. */
  charge(payment: string): Promise<void>;
  /** Writes the order. Returns false if the shop has seen a higher token for this payment. */
  writeOrder(payment: string, token: number | undefined): Promise<boolean>;
  /** Pulls the feed as the leader of that term. Returns false if the shop has seen a later leader. */
  pullFeed(term: number): Promise<boolean>;
}

/** The shop's counts of all actions. */
export interface Books {
  readonly payments: number;
  readonly presses: number;
  readonly orders: number;
  /** Orders for payments that already had one. Locks exist to prevent this. */
  readonly duplicates: number;
  readonly charges: number;
  /** The largest number of charges at the same time. */
  readonly mostAtOnce: number;
  /** Refused writes and pulls from workers whose lease had ended. */
  readonly refused: number;
  /** The number of leaders that pulled the feed, counted by term. */
  readonly leaders: number;
}

const SHORTEST_CHARGE_MS = 60;
const LONGEST_CHARGE_MS = 180;

/** A shop that counts all actions. */
export class CountingShop implements Shop {
  readonly #orders = new Map<string, number>();
  readonly #tokens = new Map<string, number>();
  readonly #pressed = new Set<string>();
  #presses = 0;
  #charges = 0;
  #atOnce = 0;
  #mostAtOnce = 0;
  #refused = 0;
  #leaders = 0;
  #term = 0;

  /** A customer presses the button, possibly not for the first time. */
  press(payment: string): void {
    this.#pressed.add(payment);
    this.#presses += 1;
  }

  async hasOrder(payment: string): Promise<boolean> {
    return this.#orders.has(payment);
  }

  async charge(): Promise<void> {
    this.#charges += 1;
    this.#atOnce += 1;
    this.#mostAtOnce = Math.max(this.#mostAtOnce, this.#atOnce);
    const tookMs = SHORTEST_CHARGE_MS + Math.random() * (LONGEST_CHARGE_MS - SHORTEST_CHARGE_MS);
    await new Promise((resolve) => setTimeout(resolve, tookMs));
    this.#atOnce -= 1;
  }

  async writeOrder(payment: string, token: number | undefined): Promise<boolean> {
    if (token !== undefined) {
      if (token < (this.#tokens.get(payment) ?? 0)) {
        this.#refused += 1;
        return false;
      }
      this.#tokens.set(payment, token);
    }
    this.#orders.set(payment, (this.#orders.get(payment) ?? 0) + 1);
    return true;
  }

  async pullFeed(term: number): Promise<boolean> {
    if (term < this.#term) {
      this.#refused += 1;
      return false;
    }
    if (term > this.#term) this.#leaders += 1;
    this.#term = term;
    return true;
  }

  /** Returns the current counts. */
  books(): Books {
    let orders = 0;
    for (const count of this.#orders.values()) orders += count;
    return {
      payments: this.#pressed.size,
      presses: this.#presses,
      orders,
      duplicates: orders - this.#orders.size,
      charges: this.#charges,
      mostAtOnce: this.#mostAtOnce,
      refused: this.#refused,
      leaders: this.#leaders,
    };
  }
}

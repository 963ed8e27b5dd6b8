/**
 * What the locks of the demo protect: payments, a gateway that takes its time, and a feed that one worker may pull.
 *
 * It believes nobody: it counts what was really done to it. Workers reach it by plain calls, or by messages from processes
 * of their own; it makes no difference between the two.
 */

/** What a worker can do to the shop. */
export interface Shop {
  /** Whether the payment has its order already. */
  hasOrder(payment: string): Promise<boolean>;
  /** Takes the customer's money, which takes a while. */
  charge(payment: string): Promise<void>;
  /** Writes the order. Refused (false) if a higher token has been seen for the payment. */
  writeOrder(payment: string, token: number | undefined): Promise<boolean>;
  /** Pulls the feed as the leader of that term. Refused (false) if a later leader has been seen. */
  pullFeed(term: number): Promise<boolean>;
}

/** What was done to it. */
export interface Books {
  readonly payments: number;
  readonly presses: number;
  readonly orders: number;
  /** Orders of payments that had one: what a lock is there to prevent. */
  readonly duplicates: number;
  readonly charges: number;
  /** Most charges under way at one moment. */
  readonly mostAtOnce: number;
  /** Writes and pulls of somebody whose time was over. */
  readonly refused: number;
  /** Leaders that pulled the feed, one for each term. */
  readonly leaders: number;
}

const SHORTEST_CHARGE_MS = 60;
const LONGEST_CHARGE_MS = 180;

/** The shop, and its books. */
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

  /** A customer presses the button, maybe not for the first time. */
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

  /** The books as they are now. */
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

/**
 * Leases of copies of an acquire that arrive after the original was answered and released. They last for one lease, as
 * documented.
 */
import type { Call } from "../network-host.js";

/** Tracks such leases. */
export class LateTakes {
  readonly #givenBack = new Set<string>();
  readonly #taken = new Set<string>();

  /** Records that a server has executed a script. */
  ran(server: number, { script, args }: Call): void {
    const key = `${server} ${String(args[script.args.indexOf("owner")])}`;
    if (script.name === "redlock/release") {
      this.#givenBack.add(key);
      this.#taken.delete(key);
    } else if (script.name === "redlock/acquire" && this.#givenBack.has(key)) this.#taken.add(key);
  }

  /** Whether that server holds the lock for that owner because of such a copy. */
  has(server: number, owner: string): boolean {
    return this.#taken.has(`${server} ${owner}`);
  }
}

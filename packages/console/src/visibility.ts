/** What one visitor may see of what was found: everything, or where the application decides, the locks that it says. */
import type { Viewer } from "./access.js";
import type { ClientView, ElectionView, LockRow, SemaphoreView } from "./api.js";

/** An application is asked again about each name after so long. */
const TRUSTED_MS = 15_000;
const MOST_NAMES = 20_000;

/** See the file header. Keep one for each stream: it remembers answers for a few seconds. */
export class Visibility {
  readonly #viewer: Viewer;
  readonly #answers = new Map<string, boolean>();
  #endsMs = 0;

  constructor(viewer: Viewer) {
    this.#viewer = viewer;
  }

  /** Whether a lock of that name may be seen. */
  async ofName(name: string): Promise<boolean> {
    if (this.#viewer.seesAll) return true;
    if (performance.now() >= this.#endsMs || this.#answers.size > MOST_NAMES) {
      this.#answers.clear();
      this.#endsMs = performance.now() + TRUSTED_MS;
    }
    const known = this.#answers.get(name);
    if (known !== undefined) return known;
    const isSeen = await this.#viewer.may("view", name);
    this.#answers.set(name, isSeen);
    return isSeen;
  }

  /** Those of them that may be seen. */
  async among<Item>(items: readonly Item[], nameOf: (item: Item) => string): Promise<readonly Item[]> {
    if (this.#viewer.seesAll) return items;
    const seen: Item[] = [];
    for (const item of items) if (await this.ofName(nameOf(item))) seen.push(item);
    return seen;
  }

  /** Rows of the list. */
  rows(rows: readonly LockRow[]): Promise<readonly LockRow[]> {
    return this.among(rows, ({ name }) => name);
  }

  /** Views that have a row. */
  views<View extends SemaphoreView | ElectionView>(views: readonly View[]): Promise<readonly View[]> {
    return this.among(views, ({ row }) => row.name);
  }

  /**
   * Clients with what they hold. Whoever may not see all locks sees only clients that hold one which may be seen: hosts of other
   * tenants are theirs as well. How much such a client waits for is not told.
   */
  async clients(clients: readonly ClientView[]): Promise<readonly ClientView[]> {
    if (this.#viewer.seesAll) return clients;
    const seen: ClientView[] = [];
    for (const client of clients) {
      const holds = await this.among(client.holds, ({ name }) => name);
      const isWhole = holds.length === client.holds.length;
      if (holds.length === 0) continue;
      seen.push(isWhole ? client : { ...client, holds, heldCount: holds.length, waitCount: 0 });
    }
    return seen;
  }
}

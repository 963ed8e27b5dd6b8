/** Filters data by what one visitor may see: everything, or the locks that the application's `authorize` permits. */
import type { Viewer } from "./access.js";
import type { ClientsState, ClientView, ElectionsState, LockRow, SemaphoresState } from "./api.js";

/** How long the application's answer about a name is cached. */
const TRUSTED_MS = 15_000;
const MOST_NAMES = 20_000;

/** Maximum number of holds sent per client. */
const MOST_HOLDS = 100;

function listed(client: ClientView): ClientView {
  return client.holds.length <= MOST_HOLDS ? client : { ...client, holds: client.holds.slice(0, MOST_HOLDS) };
}

/** Checks names for one visitor. Use one per stream: it caches answers for a few seconds. */
export class Visibility {
  readonly #viewer: Viewer;
  readonly #answers = new Map<string, boolean>();
  #endsMs = 0;

  constructor(viewer: Viewer) {
    this.#viewer = viewer;
  }

  /** Whether the visitor may see a lock with that name. */
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

  /** The items that the visitor may see: all, or at least the first `enough` of them. */
  async among<Item>(
    items: readonly Item[],
    nameOf: (item: Item) => string,
    enough: number = Number.POSITIVE_INFINITY,
  ): Promise<readonly Item[]> {
    if (this.#viewer.seesAll) return items;
    const seen: Item[] = [];
    for (const item of items) {
      if (seen.length >= enough) break;
      if (await this.ofName(nameOf(item))) seen.push(item);
    }
    return seen;
  }

  /** The visible rows of the list. */
  rows(rows: readonly LockRow[]): Promise<readonly LockRow[]> {
    return this.among(rows, ({ name }) => name);
  }

  /** The visible semaphores. */
  async semaphores(state: SemaphoresState): Promise<SemaphoresState> {
    return { ...state, semaphores: await this.among(state.semaphores, ({ row }) => row.name) };
  }

  /** The visible elections. */
  async elections(state: ElectionsState): Promise<ElectionsState> {
    return { ...state, elections: await this.among(state.elections, ({ row }) => row.name) };
  }

  /**
   * The clients with their visible holds. A visitor who may not see all locks sees only clients that hold a visible
   * one, because the hosts of other tenants are private as well. The number of waits is hidden too.
   */
  async clients(state: ClientsState): Promise<ClientsState> {
    if (this.#viewer.seesAll) return { ...state, clients: state.clients.map(listed) };
    const seen: ClientView[] = [];
    for (const client of state.clients) {
      const holds = await this.among(client.holds, ({ name }) => name);
      if (holds.length > 0) seen.push(listed({ ...client, holds, heldCount: holds.length, waitCount: 0 }));
    }
    return { ...state, clients: seen, lockCount: null };
  }
}

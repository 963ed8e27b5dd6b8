/** The clients page: the locks that each process holds, and which processes are gone. */
import type { Holdfast } from "holdfast";
import { type ClientEntry, clients, type LockEntry } from "holdfast/admin";
import type { ClientView, HoldView } from "./api.js";
import { clientIdOf, holdersOf, type ViewContext } from "./views.js";

/** The recorded clients, by client id. */
export type KnownClients = ReadonlyMap<string, ClientEntry>;

/** Reads the client records. @throws errors from the library */
export async function readClients(holdfast: Holdfast): Promise<KnownClients> {
  // Does not ask for holds, because the list of locks has them, along with the ends of their leases.
  const found = await clients(holdfast, { locks: [] });
  return new Map(found.map((client) => [client.clientId, client]));
}

/**
 * Returns a function that reports whether a client that holds or waits is gone. For a client without a record, the
 * function returns null, because a new client may not have written its record yet.
 */
export function deadIn(known: KnownClients | undefined): (clientId: string) => boolean | null {
  return (clientId) => {
    const client = known?.get(clientId);
    return client?.lastSeenAtMs === undefined ? null : !client.isHeardOf;
  };
}

/** All clients that have a record, hold or wait, with all their holds. Clients with the most holds come first. */
export function clientViews(
  entries: readonly LockEntry[],
  known: KnownClients = new Map(),
  context: ViewContext,
): readonly ClientView[] {
  const views = new Map<string, { view: ClientView; holds: HoldView[]; waits: number }>();
  const isDead = deadIn(known);
  const found = (clientId: string, entry: Partial<ClientEntry>): { holds: HoldView[]; waits: number } => {
    const before = views.get(clientId);
    if (before !== undefined) return before;
    const { host, pid, clientName, version, protocol, lastSeenAtMs } = { ...entry, ...known.get(clientId) };
    const view = {
      clientId,
      host: host ?? null,
      pid: pid ?? null,
      app: clientName ?? null,
      version: version ?? null,
      protocol: protocol ?? null,
      sinceAtMs: known.get(clientId)?.sinceAtMs ?? null,
      seenAtMs: lastSeenAtMs ?? null,
      isDead: isDead(clientId),
      holds: [],
      heldCount: 0,
      waitCount: 0,
    };
    const made = { view, holds: [], waits: 0 };
    views.set(clientId, made);
    return made;
  };
  for (const clientId of known.keys()) found(clientId, {});
  for (const entry of entries) {
    for (const [i, holder] of holdersOf(entry.holders, context).entries()) {
      if (holder.clientId === null) continue;
      const { owner, token, sinceAtMs, expiresAtMs } = holder;
      const key = entry.key ?? null;
      found(holder.clientId, entry.holders[i] ?? {}).holds.push({
        ...{ kind: entry.kind, name: entry.name, key, owner, token, sinceAtMs, expiresAtMs },
      });
    }
    for (const waiter of entry.waiters) {
      const clientId = clientIdOf(waiter.owner);
      if (clientId !== null) found(clientId, waiter).waits += 1;
    }
  }
  return [...views.values()]
    .map(({ view, holds, waits }) => ({
      ...view,
      holds: holds.sort((left, right) => (left.name < right.name ? -1 : 1)),
      heldCount: holds.length,
      waitCount: waits,
      // A client that neither holds nor waits writes no record, so its silence does not mean that it is dead.
      isDead: holds.length + waits > 0 || view.isDead === false ? view.isDead : null,
    }))
    .sort((left, right) => right.heldCount - left.heldCount || (left.clientId < right.clientId ? -1 : 1));
}

/** Asks several independent servers, some of which may not reply. */

import { StoreError } from "../core/errors.js";
import type { Store } from "../core/store.js";

/** The servers from which locks are listed. */
interface Servers {
  /** One store for a single server or a cluster, or one for each of several independent servers. */
  readonly stores: readonly Store[];
  /** Independent servers that failed to reply while this list was read. They are not asked again. */
  readonly lost?: Set<Store>;
}

/**
 * Runs `work` on each server that is not lost, and returns the results. A server that does not reply is lost from then
 * on, unless it is the only one.
 */
export async function onServers<Result>(
  { stores, lost }: Servers,
  work: (store: Store) => Promise<Result>,
): Promise<PromiseSettledResult<Result>[]> {
  const others = stores.filter((store) => lost?.has(store) !== true);
  const asked = others.length === 0 ? stores : others;
  return await Promise.allSettled(
    asked.map(async (store) => {
      try {
        return await work(store);
      } catch (error) {
        if (stores.length > 1) noteLoss(lost, store, error);
        throw error;
      }
    }),
  );
}

/** Adds a server that did not reply. A server that refused the request is not lost, because it may accept others. */
export function noteLoss(lost: Set<Store> | undefined, store: Store, error: unknown): void {
  if (error instanceof StoreError && error.transient) lost?.add(store);
}

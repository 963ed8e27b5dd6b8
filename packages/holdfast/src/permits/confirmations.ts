/**
 * Confirms, with few requests, all permits granted to a process in one turn of the event loop; see
 * `permits/confirm.lua`.
 */
import { call } from "../core/call.js";
import type { Grant, NotHeld } from "../core/protocol.js";
import type { Store } from "../core/store.js";
import { permitsConfirm } from "../generated/permits.js";

/** Maximum number of grants in one request. A larger request would delay the requests of other clients. */
const MOST = 128;

/** The store, the name and the keys that a confirmation needs. */
export interface ConfirmedPlace {
  readonly store: Store;
  readonly name: string;
  readonly keys: {
    readonly state: string;
    readonly fence: string;
    readonly holders: string;
    readonly slots: string;
  };
}

type Confirmed = "extended" | NotHeld;

/** Grants to confirm at the end of the turn. */
interface Batch {
  readonly grants: string[];
  readonly sent: Promise<ReadonlySet<number>>;
}

const batchesOf = new WeakMap<Store, Map<string, Batch>>();

/** Confirms a grant and renews its lease, in a batch with other grants of the same name. @throws StoreError */
export async function confirmTogether(place: ConfirmedPlace, grant: Grant, timeoutMs: number): Promise<Confirmed> {
  const batches = batchesOf.get(place.store) ?? new Map<string, Batch>();
  batchesOf.set(place.store, batches);
  const { state } = place.keys;
  const batch = batches.get(state) ?? begin(batches, place, timeoutMs);
  const { claim, token } = grant;
  const index = batch.grants.push(`${claim.owner} ${token} ${claim.leaseMs}`);
  if (index === MOST) batches.delete(state);
  return (await batch.sent).has(index) ? "forgotten" : "extended";
}

function begin(batches: Map<string, Batch>, place: ConfirmedPlace, timeoutMs: number): Batch {
  const grants: string[] = [];
  const { store, name, keys } = place;
  const sent = Promise.resolve().then(async () => {
    if (batches.get(keys.state) === batch) batches.delete(keys.state);
    const args = { grants: grants.join(" ") };
    const { refused } = await call({ store, name }, permitsConfirm, keys, args, timeoutMs);
    return new Set(refused.map(Number));
  });
  const batch: Batch = { grants, sent };
  batches.set(keys.state, batch);
  return batch;
}

import { clusterSlot } from "./cluster-slot.js";

const tags = new Map<number, string>();
let tried = 0;

/** A short hash tag whose keys lie in that slot of a cluster: the same one in each process, for ever. */
export function tagOf(slot: number): string {
  for (;;) {
    const known = tags.get(slot);
    if (known !== undefined) return known;
    const tag = String(tried);
    const its = clusterSlot(tag);
    if (!tags.has(its)) tags.set(its, tag);
    tried += 1;
  }
}

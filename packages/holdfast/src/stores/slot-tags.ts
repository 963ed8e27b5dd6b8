import { clusterSlot } from "./cluster-slot.js";

const tags = new Map<number, string>();
let tried = 0;

/** Returns a short hash tag for keys in this cluster slot. The tag is the same in every process and must never change. */
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

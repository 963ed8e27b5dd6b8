/** The keys of the demo: there must be none before it, and there are none after it. */
import type { Redis } from "ioredis";
import { PREFIX } from "./staff.js";

const AT_ONCE = 500;

/** How many keys stand under the demo's prefix; stops counting at the first page that has any. */
export async function countKeys(nodes: readonly Redis[]): Promise<number> {
  for (const node of nodes) {
    for await (const keys of pagesOf(node)) if (keys.length > 0) return keys.length;
  }
  return 0;
}

/** Removes them all. @returns how many there were */
export async function removeKeys(nodes: readonly Redis[]): Promise<number> {
  let removed = 0;
  for (const node of nodes) {
    for await (const keys of pagesOf(node)) {
      // One at a time, since in a cluster they lie in many slots.
      await Promise.all(keys.map((key) => node.unlink(key)));
      removed += keys.length;
    }
  }
  return removed;
}

async function* pagesOf(node: Redis): AsyncGenerator<string[]> {
  let cursor = "0";
  do {
    const [next, keys] = await node.scan(cursor, "MATCH", `${PREFIX}:*`, "COUNT", AT_ONCE);
    cursor = next;
    yield keys;
  } while (cursor !== "0");
}

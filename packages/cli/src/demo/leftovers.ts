/** Manages the keys of the demo. There must be none before the demo, and none remain after it. */
import type { Cluster, Redis } from "ioredis";
import { PREFIX } from "./staff.js";

const AT_ONCE = 500;

/** Marks that a demo is running. Without it, two demos that start at the same moment would both find no keys. */
const MARKER = `${PREFIX}:demo`;

/**
 * Reserves the prefix for one demo.
 *
 * @param forMs  the marker expires after this time
 * @returns false if another demo has reserved it, or if there are keys
 */
export async function takePrefix(client: Redis | Cluster, nodes: readonly Redis[], forMs: number): Promise<boolean> {
  if ((await client.set(MARKER, "1", "PX", Math.ceil(forMs), "NX")) === null) return false;
  if (!(await hasKeys(nodes))) return true;
  await givePrefixBack(client);
  return false;
}

/** Removes the marker. Call it after `removeKeys`. */
export async function givePrefixBack(client: Redis | Cluster): Promise<void> {
  await client.unlink(MARKER);
}

async function hasKeys(nodes: readonly Redis[]): Promise<boolean> {
  for (const node of nodes) {
    for await (const keys of pagesOf(node)) if (keys.length > 0) return true;
  }
  return false;
}

/** Removes all keys except the marker. @returns the number of removed keys */
export async function removeKeys(nodes: readonly Redis[]): Promise<number> {
  let removed = 0;
  for (const node of nodes) {
    for await (const keys of pagesOf(node)) {
      // Remove one key at a time, because in a cluster the keys are in different slots.
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
    yield keys.filter((key) => key !== MARKER);
  } while (cursor !== "0");
}

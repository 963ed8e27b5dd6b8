/** The keys of the demo: there must be none before it, and there are none after it. */
import type { Cluster, Redis } from "ioredis";
import { PREFIX } from "./staff.js";

const AT_ONCE = 500;

/** Says that a demo is on: of two that begin at the same moment both would find no keys. */
const MARKER = `${PREFIX}:demo`;

/** Takes the prefix for one demo. @param forMs  the marker ends by itself then. @returns false: another demo has it, or there are keys */
export async function takePrefix(client: Redis | Cluster, nodes: readonly Redis[], forMs: number): Promise<boolean> {
  if ((await client.set(MARKER, "1", "PX", Math.ceil(forMs), "NX")) === null) return false;
  if (!(await hasKeys(nodes))) return true;
  await givePrefixBack(client);
  return false;
}

/** After `removeKeys`. */
export async function givePrefixBack(client: Redis | Cluster): Promise<void> {
  await client.unlink(MARKER);
}

async function hasKeys(nodes: readonly Redis[]): Promise<boolean> {
  for (const node of nodes) {
    for await (const keys of pagesOf(node)) if (keys.length > 0) return true;
  }
  return false;
}

/** Removes them all but for the marker. @returns how many there were */
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
    yield keys.filter((key) => key !== MARKER);
  } while (cursor !== "0");
}

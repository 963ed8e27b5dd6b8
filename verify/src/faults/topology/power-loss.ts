/**
 * What a power loss leaves of an append-only file: the part that was synced.
 *
 * Killing the server does not do it, because what it has written stays with the kernel and reaches the disk later.
 */

import { readdir, stat, truncate } from "node:fs/promises";
import { join } from "node:path";
import type { PowerLoss } from "../stage.js";
import type { SyncLog } from "./shims.js";

/** Where redis-server 7 keeps the parts of its append-only file; before, it is one file. */
const FOLDER = "appendonlydir";

/** Cuts the append-only files of a server that is dead. @throws Error  it has none */
export async function cutToSynced(directory: string, synced: SyncLog): Promise<PowerLoss> {
  const folder = join(directory, FOLDER);
  const parts = (await readdir(folder)).filter((name) => name.endsWith(".incr.aof"));
  if (parts.length === 0) throw new Error(`there is no append-only file in ${folder}`);
  let keptBytes = 0;
  let cutBytes = 0;
  for (const part of parts) {
    const path = join(folder, part);
    const { ino, size } = await stat(path);
    const kept = Math.min(size, synced.syncedLength(ino) ?? 0);
    await truncate(path, kept);
    keptBytes += kept;
    cutBytes += size - kept;
  }
  return { keptBytes, cutBytes };
}

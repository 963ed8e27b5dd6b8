/**
 * Reduces an append-only file to the part that was synced, as a power loss does.
 *
 * Killing the server is not enough, because the kernel keeps its writes and saves them later.
 */

import { readdir, stat, truncate } from "node:fs/promises";
import { join } from "node:path";
import type { PowerLoss } from "../stage.js";
import type { SyncLog } from "./shims.js";

/** The folder of the append-only files since redis-server 7; before, there is one file. */
const FOLDER = "appendonlydir";

/** Truncates the append-only files of a dead server. @throws Error  it has none */
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

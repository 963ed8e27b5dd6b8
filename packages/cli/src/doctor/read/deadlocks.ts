import { findDeadlocks } from "holdfast/admin";
import type { Connection } from "../../frame/verb.js";
import { serverNowMs } from "../../listing/server-time.js";
import type { SeenDeadlocks } from "../check.js";

/** Reads which clients wait for each other. @throws StoreError */
export async function readDeadlocks(connection: Pick<Connection, "holdfast" | "nodes">): Promise<SeenDeadlocks> {
  const found = await findDeadlocks(connection.holdfast);
  return { ...found, atMs: await serverNowMs(connection) };
}

import { plain } from "@holdfast/console/text";
import { lookUp } from "holdfast/admin";
import type { Connection } from "../frame/verb.js";
import { goneSentence, releaseCommand } from "./gone.js";
import { serverNowMs } from "./server-time.js";

/**
 * Returns what to do about a holder whose client is gone. Undefined if the client is alive or its state is unknown.
 * Never rejects.
 */
export async function goneAdvice(connection: Connection, name: string, owner: string): Promise<string | undefined> {
  const entries = await lookUp(connection.holdfast, name).catch(() => []);
  const holder = entries.flatMap(({ holders }) => holders).find((one) => one.owner === owner);
  if (holder === undefined) return undefined;
  const gone = goneSentence(holder, await serverNowMs(connection));
  if (gone === undefined) return undefined;
  return `the holder of ${plain(name)}: ${gone}. To free it now: ${releaseCommand(name, holder)}`;
}

/** `holdfast ls --deadlocks`: lists clients that wait for each other's locks. */

import { plain } from "@holdfast/console/text";
import { findDeadlocks } from "holdfast/admin";
import { EXIT, usageError } from "../../frame/exit-codes.js";
import { jsonLine } from "../../frame/output.js";
import type { Call, Connection } from "../../frame/verb.js";
import { deadlockJson, deadlockLines } from "../../listing/deadlocks.js";
import { reportMissing } from "../../listing/missing.js";
import { serverNowMs } from "../../listing/server-time.js";

/** Flags of `ls` that have no meaning with `--deadlocks`. */
const OTHER_FLAGS = [
  "kind",
  "holder",
  "waiting",
  "held-over",
  "gone",
  "late",
  "all",
  "sort",
  "columns",
  "cursor",
  "watch",
];

/** Prints the deadlocks. @returns the exit code. @throws CliError 64  a flag that has no meaning with `--deadlocks` */
export async function listDeadlocks(call: Call, connection: Connection): Promise<number> {
  const { common, positionals, streams, values } = call;
  const other = OTHER_FLAGS.find((flag) => values[flag] !== undefined);
  if (other !== undefined) throw usageError(`--deadlocks cannot be combined with --${other}`);
  if (positionals.length > 0) throw usageError(`--deadlocks reads all locks: remove "${plain(positionals[0] ?? "")}"`);
  const found = await findDeadlocks(connection.holdfast);
  const atMs = await serverNowMs(connection);
  await reportMissing(call, connection, found);
  const { deadlocks, unreachable } = found;
  const lines = deadlocks.flatMap((deadlock, i) => [...(i === 0 ? [] : [""]), ...deadlockLines(deadlock, atMs)]);
  const text = lines.length === 0 ? "no possible deadlocks\n" : `${lines.join("\n")}\n`;
  streams.stdout.write(common.isJson ? jsonLine({ deadlocks: deadlocks.map(deadlockJson), unreachable }) : text);
  return EXIT.done;
}

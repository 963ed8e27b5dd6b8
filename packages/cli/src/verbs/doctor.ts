/** `holdfast doctor`: looks for what may go wrong with the locks on this Redis. */

import { redact } from "@holdfast/console/text";
import { examine, NobodyAnswersError } from "../doctor/examine.js";
import { readDeadlocks } from "../doctor/read/deadlocks.js";
import { report } from "../doctor/report.js";
import { CHECK_IDS } from "../doctor/table.js";
import { targetsOf } from "../doctor/target.js";
import { CliError, EXIT, usageError } from "../frame/exit-codes.js";
import { isRefusal } from "../frame/failures.js";
import { jsonLine, paintFor } from "../frame/output.js";
import { durationOf, isGiven, textOf, type Values } from "../frame/values.js";
import type { Call, Verb } from "../frame/verb.js";

/** The verb. */
export const doctor: Verb = {
  name: "doctor",
  usage: "holdfast doctor [--strict] [--only IDS] [--lease D] [--for D]",
  help: `Looks for what may go wrong with the locks on this Redis, on every node of a cluster, of a
Sentinel set or of a quorum, and says what to do about it. It takes no lock, and changes nothing
but one key and one channel of its own below the prefix, which are gone at the end.

      --strict     a warning counts like a critical finding
      --only IDS   some checks only, with commas: --only eviction,acl
      --lease D    the shortest lease your programs use (30s): answers must come in time for it
      --for D      how long to look at each node, at most (5s). What has not answered by then is
                   unknown; a database of many keys needs more for "shared", "leftovers" and
                   "lost-pauses"

Checks: ${wrapped(CHECK_IDS)}

What the server does not show (CONFIG is often forbidden) is reported as unknown, never as well.
-v shows what is well, too. Each check, and what to do at 3 a.m.: docs/doctor.md
Exit: 0; 1 a critical finding, with --strict also a warning; 69 nobody answers; 77 refused.`,
  options: {
    strict: { type: "boolean" },
    only: { type: "string" },
    lease: { type: "string" },
    for: { type: "string" },
  },
  run,
};

async function run({ values, positionals, common, streams, connect }: Call): Promise<number> {
  if (positionals.length > 0) throw usageError(`doctor takes no NAME; got "${positionals[0]}"`);
  const only = idsIn(values);
  const leaseMs = durationOf(values, "lease", { minMs: 100 }) ?? 30_000;
  const forMs = durationOf(values, "for", { minMs: 500, maxMs: 3_600_000 }) ?? 5_000;
  const startMs = performance.now();
  const connection = await connect({ isBrokenToo: true });
  try {
    const targets = await targetsOf(connection);
    const { topology, prefix, address } = connection;
    const { connectTimeoutMs, commandTimeoutMs } = common;
    const findings = await examine(targets, {
      ...{ topology, prefix, leaseMs, forMs, connectTimeoutMs, commandTimeoutMs },
      readDeadlocks: () => readDeadlocks(connection),
      ...(only === undefined ? {} : { only }),
    });
    const isBad = findings.some(
      ({ status, severity }) =>
        status === "finding" && (severity === "critical" || (severity === "warning" && isGiven(values, "strict"))),
    );
    const tookMs = performance.now() - startMs;
    const paint = paintFor(streams.stdout, common.color);
    const text = common.isJson
      ? jsonLine({ checks: findings })
      : redact(report(findings, { address, tookMs, isVerbose: common.isVerbose, paint }));
    if (common.isJson || !common.isQuiet) streams.stdout.write(text);
    return isBad ? EXIT.no : EXIT.done;
  } catch (error) {
    if (!(error instanceof NobodyAnswersError)) throw error;
    throw new CliError(isRefusal(error) ? EXIT.refused : EXIT.unreachable, error.message, { cause: error });
  } finally {
    await connection.close();
  }
}

/** @throws CliError 64  an id that is none */
function idsIn(values: Values): readonly string[] | undefined {
  const text = textOf(values, "only");
  if (text === undefined) return undefined;
  const ids = text.split(",").map((id) => id.trim());
  const wrong = ids.find((id) => !CHECK_IDS.includes(id));
  if (wrong !== undefined) throw usageError(`--only must name checks of ${CHECK_IDS.join(", ")}; got "${wrong}"`);
  return ids;
}

/** In lines of the width of the help. */
function wrapped(words: readonly string[]): string {
  const lines = [""];
  for (const word of words) {
    const last = lines.at(-1) ?? "";
    if (last.length + word.length > 84) lines.push(word);
    else lines[lines.length - 1] = last === "" ? word : `${last} ${word}`;
  }
  return lines.join("\n        ");
}

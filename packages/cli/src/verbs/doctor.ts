/** `holdfast doctor`: looks for risks to the locks on this Redis server. */

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
import { wrapped } from "../frame/wrapped.js";

/** The verb `doctor`. */
export const doctor: Verb = {
  name: "doctor",
  usage: "holdfast doctor [--strict] [--only IDS] [--lease D] [--for D]",
  help: `Checks every node of this Redis (cluster, Sentinel set or quorum) for
problems with locks, and says how to fix them. It takes no lock. On each
server, it writes one key of its own below the prefix, which it deletes at
the end, and sends messages to one channel of its own.

      --strict     a warning counts like a critical finding
      --only IDS   only these checks: --only eviction,acl
      --lease D    the shortest lease that your programs use (30s); replies
                   must be quick enough for it
      --for D      at most D for each node (5s). What has not replied by then
                   is unknown. Databases with many keys need more time for
                   "shared", "protocols", "leftovers" and "lost-pauses"

${wrapped("Checks:", CHECK_IDS, 8)}

If the server does not show a setting (CONFIG is often forbidden), the
finding is "unknown". -v also shows checks that passed. Each check is
described in docs/doctor.md
Exit code 0; 1 for a critical finding (with --strict: or a warning); 69 if no
server replies; 77 if Redis refuses you.`,
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

/** @throws CliError 64  an unknown check id */
function idsIn(values: Values): readonly string[] | undefined {
  const text = textOf(values, "only");
  if (text === undefined) return undefined;
  const ids = text.split(",").map((id) => id.trim());
  const wrong = ids.find((id) => !CHECK_IDS.includes(id));
  if (wrong !== undefined) throw usageError(`--only must name checks of ${CHECK_IDS.join(", ")}; got "${wrong}"`);
  return ids;
}

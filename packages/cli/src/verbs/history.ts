/** `holdfast history`: shows who held which lock, and how each hold ended. */
import { searchHistory } from "holdfast/internal";
import { EXIT, usageError } from "../frame/exit-codes.js";
import { jsonLine, paintFor, table } from "../frame/output.js";
import { durationOf, nameOf, textOf, wholeOf, wordOf } from "../frame/values.js";
import type { Verb } from "../frame/verb.js";
import { wrapped } from "../frame/wrapped.js";
import { reportMissing } from "../listing/missing.js";
import { onlyNative } from "../listing/native.js";
import { historyColumns, historyJson, PAST_OUTCOMES } from "../listing/past.js";

const HELP = `
Shows who held a lock, how long they waited for it and held it, and how it
ended; newest first. run, elect, pauses and force-releases are always
recorded. Programs are recorded if they call recordHistory.

  NAME                    only this lock
      --name-part TEXT    only locks whose name contains TEXT
      --since D           how far back (24h)
      --outcome O         ${wrapped("only this outcome:", PAST_OUTCOMES)}
      --limit N           at most N entries (50)

expired: the lease ended without a release, and the client is gone.
skipped: a run that was not granted the lock. Exit code 0.

--json: {"v":1,"history":[…],"unreachable":0}.`;

/** A pattern that matches names containing the text. Special characters in the text are escaped. */
function patternOf(part: string | undefined): { readonly pattern?: string } {
  return part === undefined ? {} : { pattern: `*${part.replace(/[\\*?[]/g, "\\$&")}*` };
}

const LONGEST_SINCE_MS = 31_536_000_000;

/** The verb `history`. */
export const history: Verb = {
  name: "history",
  usage: "holdfast history [NAME | --name-part TEXT] [flags]",
  help: HELP,
  options: {
    "name-part": { type: "string" },
    since: { type: "string" },
    outcome: { type: "string" },
    limit: { type: "string" },
  },
  async run({ values, positionals, common, streams, connect }) {
    onlyNative("history", common);
    const name = positionals.length === 0 ? undefined : nameOf("history", positionals);
    const part = textOf(values, "name-part");
    if (part !== undefined && name !== undefined) throw usageError("history takes NAME or --name-part TEXT, not both");
    if (part === "") throw usageError("--name-part must not be empty: leave it out to see all locks");
    const sinceMs = durationOf(values, "since", { minMs: 1, maxMs: LONGEST_SINCE_MS }) ?? 86_400_000;
    const outcome = wordOf(values, "outcome", PAST_OUTCOMES) ?? PAST_OUTCOMES;
    const limit = wholeOf(values, "limit", { min: 1, max: 10_000 }) ?? 50;
    const connection = await connect();
    try {
      const wish = { sinceMs, outcome, limit, ...(name === undefined ? {} : { name }), ...patternOf(part) };
      const { entries, unreachable } = await searchHistory(connection.holdfast, wish);
      await reportMissing({ common, streams }, connection, { unreachable, what: "history" });
      const columns = historyColumns({ withName: name === undefined });
      const paint = paintFor(streams.stdout, common.color);
      streams.stdout.write(
        common.isJson
          ? jsonLine({ history: entries.map(historyJson), unreachable })
          : table(columns, entries, { paint }),
      );
      return EXIT.done;
    } finally {
      await connection.close();
    }
  },
};

/** `holdfast top`: shows the busiest locks, live. */

import { plain } from "@holdfast/console/text";
import { parseDuration, sleep } from "../../frame/durations.js";
import { EXIT, usageError } from "../../frame/exit-codes.js";
import { failureOf } from "../../frame/failures.js";
import { jsonLine, notify, paintFor, table } from "../../frame/output.js";
import { isGiven, textOf, wholeOf } from "../../frame/values.js";
import type { Call, Connection, Verb } from "../../frame/verb.js";
import { reportMissing } from "../../listing/missing.js";
import { onlyNative } from "../../listing/native.js";
import { fitted } from "../../live/clip.js";
import { listenForSignals } from "../../live/interruption.js";
import { COLUMNS, hottest, snapshotJson } from "./list.js";
import { LiveTop } from "./live-top.js";
import { Sampler } from "./sampler.js";

const HELP = `
Shows the busiest locks, live: the holder, the longest wait, the part of the
samples in which each lock was held, and from its history the grants per
second, refusals and losses of the last minute (- without a history).

  PATTERN                 only matching names, as in ls
      --interval D        time between samples (1s)
      --once              print one sample and exit
  -n, --rows N            at most N locks (as many as fit; 20 without a
                          terminal)

Keys: s sort, / filter, p freeze and continue, q quit. If stdout is not a
terminal: JSON Lines, one sample each. Exit code 0.`;

const USUAL_ROWS = 20;

/** The verb `top`. */
export const top: Verb = {
  name: "top",
  usage: "holdfast top [PATTERN] [--interval D] [--once] [-n ROWS]",
  help: HELP,
  options: {
    interval: { type: "string" },
    once: { type: "boolean" },
    rows: { type: "string", short: "n" },
  },
  async run(call) {
    const { values, positionals, common, streams } = call;
    onlyNative("top", common);
    const [pattern, extra] = positionals;
    if (extra !== undefined) throw usageError(`top takes one PATTERN, quoted; got "${pattern}" and "${extra}"`);
    const intervalMs = parseDuration("--interval", textOf(values, "interval") ?? "1s", { minMs: 100 });
    const rows = wholeOf(values, "rows", { min: 1, max: 1_000 });
    const connection = await call.connect();
    const sampler = new Sampler(connection, pattern);
    try {
      if (isGiven(values, "once")) return await once(call, connection, sampler, rows ?? USUAL_ROWS);
      const isTerminal = streams.stdout.isTTY === true && streams.stdin.isTTY === true;
      if (common.isJson || !isTerminal) return await lines(call, sampler, intervalMs, rows ?? USUAL_ROWS);
      return await new LiveTop(call, sampler, { intervalMs, rows }).run();
    } finally {
      await connection.close();
    }
  },
};

async function once(call: Call, connection: Connection, sampler: Sampler, rows: number): Promise<number> {
  const { common, streams } = call;
  const snapshot = await sampler.sample();
  const locks = await sampler.withPast(hottest(snapshot.locks, "waiters", "").slice(0, rows));
  const paint = paintFor(streams.stdout, common.color);
  const { length } = snapshot.locks;
  if (!snapshot.isComplete) notify(streams, common, `only ${length} locks were read: narrow them with PATTERN`);
  await reportMissing(call, connection, { unreachable: snapshot.unreachable });
  streams.stdout.write(
    common.isJson
      ? jsonLine(snapshotJson({ ...snapshot, locks }))
      : table(fitted(COLUMNS, streams.stdout.columns), locks, { paint }),
  );
  return EXIT.done;
}

/** Prints one line for each sample until a signal. If Redis is unreachable, reports that once and keeps trying. */
async function lines({ streams, common }: Call, sampler: Sampler, intervalMs: number, rows: number): Promise<number> {
  const interruption = listenForSignals();
  let complaint = "";
  let isFirst = true;
  try {
    while (!interruption.signal.aborted) {
      try {
        const snapshot = await sampler.sample();
        const locks = await sampler.withPast(hottest(snapshot.locks, "waiters", "").slice(0, rows));
        streams.stdout.write(jsonLine(snapshotJson({ ...snapshot, locks })));
        complaint = "";
      } catch (error) {
        const failure = failureOf(error);
        if (isFirst || failure.code !== EXIT.unreachable) throw error;
        if (failure.message !== complaint) notify(streams, common, plain(failure.message));
        complaint = failure.message;
      }
      isFirst = false;
      await sleep(intervalMs, interruption.signal);
    }
    return interruption.exitCode();
  } finally {
    interruption.stop();
  }
}

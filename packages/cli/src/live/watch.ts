/** `--watch`: reads repeatedly. On a terminal, each result replaces the last; other outputs get all of them in turn. */

import { plain, redact } from "@holdfast/console/text";
import { sleep } from "../frame/durations.js";
import { CliError, EXIT } from "../frame/exit-codes.js";
import { failureOf } from "../frame/failures.js";
import { jsonLine, notify } from "../frame/output.js";
import type { Call } from "../frame/verb.js";
import { formatInstant } from "../text/instants.js";
import { listenForSignals } from "./interruption.js";
import { Screen } from "./screen.js";

/** One result: lines for people, and a document for programs. */
export interface View {
  readonly lines: readonly string[];
  readonly json: object;
}

/** The interval of `--watch` without a value. */
export const USUAL_WATCH = "2s";

/**
 * Reads every `intervalMs` until INT, TERM, HUP or QUIT. If Redis is unreachable, reports that once and keeps trying.
 *
 * @returns the exit code
 * @throws the first error of `read`, and later every error except an unreachable Redis
 */
export async function watch(call: Call, intervalMs: number, read: () => Promise<View>): Promise<number> {
  const first = await read();
  const interruption = listenForSignals();
  const show = shower(call);
  try {
    let next: View | CliError = first;
    while (!interruption.signal.aborted) {
      show.picture(next);
      await sleep(intervalMs, interruption.signal);
      if (interruption.signal.aborted) break;
      next = await read().catch((error: unknown) => passing(error));
    }
    return interruption.exitCode();
  } finally {
    show.close();
    interruption.stop();
  }
}

/** Returns the failure if it is temporary. @throws the error otherwise */
function passing(error: unknown): CliError {
  const failure = failureOf(error);
  if (failure.code !== EXIT.unreachable) throw error;
  return failure;
}

interface Shower {
  picture(next: View | CliError): void;
  close(): void;
}

function shower({ common, streams }: Call): Shower {
  let complaint = "";
  const notifyOnce = ({ message }: CliError): void => {
    if (message !== complaint) notify(streams, common, plain(message));
    complaint = message;
  };
  if (common.isJson || streams.stdout.isTTY !== true) {
    let isFirst = true;
    return {
      picture(next) {
        if (next instanceof CliError) return notifyOnce(next);
        complaint = "";
        const text = common.isJson ? jsonLine(next.json) : `${isFirst ? "" : "\n"}${next.lines.join("\n")}\n`;
        isFirst = false;
        streams.stdout.write(text);
      },
      close() {},
    };
  }
  const screen = new Screen(streams.stdout);
  screen.open();
  let last: readonly string[] = [];
  return {
    picture(next) {
      const isAway = next instanceof CliError;
      if (!isAway) last = next.lines;
      const head = isAway ? `holdfast: retrying: ${plain(redact(next.message))}` : formatInstant(Date.now());
      screen.draw([head, "", ...last]);
    },
    close: () => screen.close(),
  };
}

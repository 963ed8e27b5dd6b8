/** `--watch`: the same look again and again, on a terminal in place, and otherwise one after the other. */
import { sleep } from "../frame/durations.js";
import { CliError, EXIT } from "../frame/exit-codes.js";
import { failureOf } from "../frame/failures.js";
import { jsonLine, plain, tell } from "../frame/output.js";
import { redact } from "../frame/redact.js";
import type { Call } from "../frame/verb.js";
import { formatInstant } from "../text/instants.js";
import { listenForSignals } from "./interruption.js";
import { Screen } from "./screen.js";

/** One look: for people as lines, and for programs as a document. */
export interface Look {
  readonly lines: readonly string[];
  readonly json: object;
}

/** What `--watch` means without a value. */
export const USUAL_WATCH = "2s";

/**
 * Looks every `intervalMs` until INT, TERM or HUP. A Redis that is away is told of once, and asked again.
 *
 * @returns the exit code
 * @throws what `look` throws for the first time, and whatever is not a Redis that is away
 */
export async function watch(call: Call, intervalMs: number, look: () => Promise<Look>): Promise<number> {
  const first = await look();
  const interruption = listenForSignals();
  const show = shower(call);
  try {
    let next: Look | CliError = first;
    while (!interruption.signal.aborted) {
      show.picture(next);
      await sleep(intervalMs, interruption.signal);
      if (interruption.signal.aborted) break;
      next = await look().catch((error: unknown) => passing(error));
    }
    return interruption.exitCode();
  } finally {
    show.close();
    interruption.stop();
  }
}

/** The failure, if it may pass. @throws the error otherwise */
function passing(error: unknown): CliError {
  const failure = failureOf(error);
  if (failure.code !== EXIT.unreachable) throw error;
  return failure;
}

interface Shower {
  picture(next: Look | CliError): void;
  close(): void;
}

function shower({ common, streams }: Call): Shower {
  let complaint = "";
  const tellOnce = ({ message }: CliError): void => {
    if (message !== complaint) tell(streams, common, plain(message));
    complaint = message;
  };
  if (common.isJson || streams.stdout.isTTY !== true) {
    let isFirst = true;
    return {
      picture(next) {
        if (next instanceof CliError) return tellOnce(next);
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
      const head = isAway ? `holdfast: asking again: ${plain(redact(next.message))}` : formatInstant(Date.now());
      screen.draw([head, "", ...last]);
    },
    close: () => screen.close(),
  };
}

/** `--until-eof`: standard input as a sign that the calling script still wants the lock. */
import { fstatSync } from "node:fs";
import { isatty } from "node:tty";
import { usageError } from "../../frame/exit-codes.js";
import type { Streams } from "../../frame/streams.js";

/**
 * Resolves when standard input ends: the script closed its descriptor, or has ended. What is written there is dropped.
 *
 * @throws CliError 64  it ends at once or never, as /dev/null and files do
 */
export function endOfInput(stdin: Streams["stdin"]): Promise<void> {
  const input = fstatSync(0);
  // Node opens /dev/null where standard input is closed.
  if (!input.isFIFO() && !input.isSocket() && !isatty(0)) {
    throw usageError(
      "--until-eof needs a pipe as standard input; it is closed, /dev/null or a file. Start it as a coprocess",
    );
  }
  return new Promise((resolve) => {
    for (const event of ["end", "close", "error"]) stdin.on(event, () => resolve());
    stdin.resume();
  });
}

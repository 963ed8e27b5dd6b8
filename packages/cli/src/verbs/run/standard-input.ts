/** `--until-eof`: an open standard input means that the calling script still needs the lock. */
import { fstatSync } from "node:fs";
import { isatty } from "node:tty";
import { usageError } from "../../frame/exit-codes.js";
import type { Streams } from "../../frame/streams.js";

/**
 * Resolves when standard input ends, because the script closed its descriptor or has ended. Ignores everything that is
 * written to it.
 *
 * @throws CliError 64  standard input ends immediately or never, as with /dev/null and files
 */
export function endOfInput(stdin: Streams["stdin"]): Promise<void> {
  const input = fstatSync(0);
  // Node opens /dev/null if standard input is closed.
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

import { createInterface } from "node:readline/promises";
import { usageError } from "../frame/exit-codes.js";
import type { Streams } from "../frame/streams.js";

/**
 * Asks the person at the terminal. Returns the answer, or an empty string at the end of the input.
 *
 * @throws CliError 64  with the message `otherwise`, if there is no terminal
 */
export async function answerTo({ stdin, stderr }: Streams, question: string, otherwise: string): Promise<string> {
  if (stdin.isTTY !== true) throw usageError(otherwise);
  const asking = createInterface({ input: stdin, output: stderr, terminal: false });
  const ended = new Promise<string>((resolve) => asking.once("close", () => resolve("")));
  try {
    return await Promise.race([asking.question(question), ended]);
  } finally {
    asking.close();
  }
}

/**
 * Asks a yes/no question at the terminal. Prints it on stderr, because stdout may be redirected.
 *
 * @returns whether the answer is `y` or `yes`; false at the end of the input
 * @throws CliError 64  there is no terminal
 */
export async function confirmed(streams: Streams, question: string): Promise<boolean> {
  const answer = await answerTo(
    streams,
    question,
    "--force asks for confirmation, but there is no terminal: add --yes",
  );
  return /^\s*y(es)?\s*$/i.test(answer);
}

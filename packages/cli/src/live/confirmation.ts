import { createInterface } from "node:readline/promises";
import { usageError } from "../frame/exit-codes.js";
import type { Streams } from "../frame/streams.js";

/**
 * Asks the person at the terminal, on stderr, since stdout may go elsewhere.
 *
 * @returns whether the answer begins with y; false at the end of the input
 * @throws CliError 64  there is no server to ask
 */
export async function confirmed({ stdin, stderr }: Streams, question: string): Promise<boolean> {
  if (stdin.isTTY !== true) throw usageError("--force asks, and there is no terminal to ask on: add --yes");
  const asking = createInterface({ input: stdin, output: stderr, terminal: false });
  const ended = new Promise<string>((resolve) => asking.once("close", () => resolve("")));
  try {
    const answer = await Promise.race([asking.question(question), ended]);
    return /^\s*y(es)?\s*$/i.test(answer);
  } finally {
    asking.close();
  }
}

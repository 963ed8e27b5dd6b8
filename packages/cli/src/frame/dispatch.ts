/** Runs one call of the command: finds the verb, imports only that verb, and turns its outcome into an exit code. */

import { plain, redact } from "@holdfast/console/text";
import { parseLine, verbFirst } from "./command-line.js";
import { EXIT } from "./exit-codes.js";
import { failureOf } from "./failures.js";
import { type CommonFlags, commonFlags } from "./flags.js";
import type { Streams } from "./streams.js";
import { isGiven } from "./values.js";
import type { Call, Verb } from "./verb.js";
import { loadVerb } from "./verbs-table.js";

/**
 * Runs one command line.
 *
 * @param words    without the program's own name
 * @param version  returns the version of the package; where it is stored depends on whether this file is bundled
 * @returns the exit code; never rejects
 */
export async function dispatch(words: readonly string[], streams: Streams, version: () => string): Promise<number> {
  // Parsing the flags can fail, so look for `--verbose` in the raw words first.
  let isVerbose = words.includes("-v") || words.includes("--verbose");
  try {
    const [first = "help", ...rest] = verbFirst(words);
    if (first === "--version" || first === "-V") return say(streams, `holdfast ${version()}\n`);
    if (first === "help" || first === "--help" || first === "-h") {
      const [about] = rest;
      return say(streams, await helpAbout(about === undefined ? undefined : await loadVerb(about)));
    }
    const verb = await loadVerb(first);
    const line = parseLine(verb, rest);
    if (isGiven(line.values, "help")) return say(streams, await helpAbout(verb));
    const common = commonFlags(line.values, streams.env);
    isVerbose = common.isVerbose;
    return await verb.run(callOf(verb, line, common, streams));
  } catch (error) {
    return complain(error, streams, isVerbose);
  }
}

function callOf(verb: Verb, line: ReturnType<typeof parseLine>, common: CommonFlags, streams: Streams): Call {
  return {
    ...line,
    common,
    streams,
    async connect(options = {}) {
      const { connect } = await import("./connect.js");
      return await connect(verb.name, common, options);
    },
  };
}

/** Imports the help texts only when they are needed, because `run` needs none of them. */
async function helpAbout(verb: Verb | undefined): Promise<string> {
  const { generalHelp, verbHelp } = await import("./help.js");
  return verb === undefined ? generalHelp() : await verbHelp(verb);
}

function say({ stdout }: Streams, text: string): number {
  stdout.write(text);
  return EXIT.done;
}

function complain(error: unknown, { stderr }: Streams, isVerbose: boolean): number {
  const failure = failureOf(error);
  // The message may quote a lock name or a label, which other clients choose.
  stderr.write(`holdfast: ${plain(redact(failure.message))}\n`);
  const { stack } = error instanceof Error && failure.code === EXIT.internal ? error : {};
  if (isVerbose && stack !== undefined) stderr.write(`${redact(stack)}\n`);
  return failure.code;
}

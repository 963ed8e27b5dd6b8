/** Parses the words of a command line into the flags of a verb. */
import { parseArgs } from "node:util";
import { shellWord } from "@holdfast/console/text";
import { usageError } from "./exit-codes.js";
import { COMMON_OPTIONS } from "./flags.js";
import type { Options, Values } from "./values.js";
import type { Verb } from "./verb.js";

/** The parsed words. */
export interface ParsedLine {
  readonly values: Values;
  readonly positionals: readonly string[];
  /** The words after the first `--`. */
  readonly command: readonly string[] | undefined;
}

/**
 * Returns the words with the verb first, because common flags may precede it, as in `holdfast -r URL ls`.
 *
 * @returns the same words if they contain no verb, or if they ask for the version
 */
export function verbFirst(words: readonly string[]): readonly string[] {
  if (!/^-./.test(words[0] ?? "") || words[0] === "--version" || words[0] === "-V") return words;
  const parsed = {
    args: [...words],
    options: COMMON_OPTIONS,
    allowPositionals: true,
    strict: false,
    tokens: true,
  } as const;
  const verb = parseArgs(parsed).tokens.find(({ kind }) => kind !== "option");
  if (verb?.kind !== "positional") return words;
  return [verb.value, ...words.slice(0, verb.index), ...words.slice(verb.index + 1)];
}

/**
 * Parses the words after the verb.
 *
 * @throws CliError 64  an unknown flag, a flag without its value, or a command without `--` before it
 */
export function parseLine(verb: Verb, words: readonly string[]): ParsedLine {
  const dashes = words.indexOf("--");
  const ours = withValues(verb, dashes < 0 ? words : words.slice(0, dashes));
  const command = dashes < 0 ? undefined : words.slice(dashes + 1);
  if (command !== undefined && verb.takesCommand !== true) {
    throw usageError(`${verb.name} takes no command after --`);
  }
  const options: Options = { ...COMMON_OPTIONS, ...verb.options };
  if (verb.takesCommand === true && command === undefined) refuseBareCommand(verb, ours, options);
  try {
    const args = withDashedValues(options, ours);
    const { values, positionals } = parseArgs({ args, options, allowPositionals: true, strict: true });
    return { values, positionals, command };
  } catch (error) {
    throw usageError(explain(verb, error));
  }
}

/** Adds the default value to flags given without one, because `parseArgs` does not support optional values. */
function withValues({ options }: Verb, words: readonly string[]): string[] {
  return words.map((word, at) => {
    const flag = word.startsWith("--") ? word.slice(2) : "";
    const bare = Object.hasOwn(options, flag) ? options[flag]?.bare : undefined;
    return bare === undefined || /^[.\d]/.test(words[at + 1] ?? "") ? word : `${word}=${bare}`;
  });
}

/**
 * Joins a flag and a value that begins with a dash, as `--owner=-x…`. Owner ids of older versions can begin with a
 * dash, and `parseArgs` refuses them as a separate word. A word that is a flag of the verb is never taken as a value,
 * because in that case the user forgot the value.
 */
function withDashedValues(options: Options, words: readonly string[]): string[] {
  const flags = new Map(
    Object.entries(options).flatMap(([name, { short, type }]) =>
      [`--${name}`, ...(short === undefined ? [] : [`-${short}`])].map((word) => [word, type] as const),
    ),
  );
  const joined: string[] = [];
  for (const word of words) {
    const before = joined.at(-1) ?? "";
    const isValue = flags.get(before) === "string" && /^-./.test(word) && !flags.has(word.split("=")[0] ?? "");
    if (!isValue) joined.push(word);
    else joined[joined.length - 1] = before.startsWith("--") ? `${before}=${word}` : `${before}${word}`;
  }
  return joined;
}

/**
 * Refuses a second bare word. Flags may follow NAME, so without `--` the command's own `-n` would be read as a flag of
 * the verb.
 */
function refuseBareCommand(verb: Verb, words: readonly string[], options: Options): void {
  const { tokens } = parseArgs({ args: [...words], options, allowPositionals: true, strict: false, tokens: true });
  if (tokens.some((token) => token.kind === "option" && token.name === "help")) return;
  const second = tokens.filter((token) => token.kind === "positional")[1];
  if (second === undefined) return;
  const line = ["holdfast", verb.name, ...words.slice(0, second.index), "--", ...words.slice(second.index)];
  throw usageError(`put -- before the command: ${line.map(shellWord).join(" ")}`);
}

/** Replaces Node's message for an unknown flag, because it suggests `--`, which is wrong here. */
function explain(verb: Verb, error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  if (!code?.startsWith("ERR_PARSE_ARGS")) throw error;
  const flag = /^Unknown option '([^']+)'/.exec(message)?.[1];
  if (flag !== undefined) return `${verb.name} has no flag ${flag}; holdfast help ${verb.name} lists them`;
  return `${message.split("\n")[0]?.replace(/\.$/, "")}; holdfast help ${verb.name} lists the flags`;
}

/** Flags as `parseArgs` takes and finds them, and the checks that every one needs. */
import { parseDuration } from "./durations.js";
import { usageError } from "./exit-codes.js";

/** One flag, as `parseArgs` of node:util takes it. A repeatable one is `multiple`. */
export interface OptionSpec {
  readonly type: "string" | "boolean";
  readonly short?: string;
  readonly multiple?: boolean;
  /** What the flag means without a value. A value that follows as a word of its own must begin with a digit. */
  readonly bare?: string;
}

/** The flags of a verb, by their long names without dashes. None may be called like a common flag, unless it means the same. */
export type Options = Readonly<Record<string, OptionSpec>>;

/** What was given for each flag. Read it with the functions below. */
export type Values = Readonly<Record<string, string | boolean | readonly (string | boolean)[] | undefined>>;

/** Whether a boolean flag was given. */
export function isGiven(values: Values, flag: string): boolean {
  return values[flag] === true;
}

/** The text of a flag; undefined if it was not given. */
export function textOf(values: Values, flag: string): string | undefined {
  const value = values[flag];
  return typeof value === "string" ? value : undefined;
}

/** All texts of a flag that may be repeated. */
export function textsOf(values: Values, flag: string): readonly string[] {
  const value = values[flag];
  return Array.isArray(value) ? value.filter((one) => typeof one === "string") : [];
}

/** A duration in ms; undefined if it was not given. @throws CliError 64 */
export function durationOf(
  values: Values,
  flag: string,
  range?: { minMs?: number; maxMs?: number },
): number | undefined {
  const text = textOf(values, flag);
  return text === undefined ? undefined : parseDuration(`--${flag}`, text, range);
}

/** A whole number; undefined if it was not given. @throws CliError 64 */
export function wholeOf(values: Values, flag: string, { min, max }: { min: number; max: number }): number | undefined {
  const text = textOf(values, flag);
  if (text === undefined) return undefined;
  const number = /^\d+$/.test(text) ? Number(text) : Number.NaN;
  if (number >= min && number <= max) return number;
  throw usageError(`--${flag} must be a whole number, ${min} to ${max}; got "${text}"`);
}

/** One of a few words; undefined if it was not given. @throws CliError 64 */
export function wordOf<Word extends string>(values: Values, flag: string, words: readonly Word[]): Word | undefined {
  const text = textOf(values, flag);
  const word = words.find((one) => one === text);
  if (text === undefined || word !== undefined) return word;
  throw usageError(`--${flag} must be one of ${words.join(", ")}; got "${text}"`);
}

/** The one positional of a verb that takes a lock's name: 1 to 512 bytes. @throws CliError 64 */
export function nameOf(verb: string, positionals: readonly string[]): string {
  const [name, extra] = positionals;
  if (name === undefined || name === "") throw usageError(`${verb} needs the NAME of a lock`);
  if (extra !== undefined) throw usageError(`${verb} takes one NAME; got "${name}" and "${extra}"`);
  if (Buffer.byteLength(name) > 512) throw usageError(`NAME must be 1 to 512 bytes; got ${Buffer.byteLength(name)}`);
  return name;
}

/** The types of flags for `parseArgs`, and functions that read and check their values. */
import { parseDuration } from "./durations.js";
import { usageError } from "./exit-codes.js";

/** One flag, as `parseArgs` of node:util takes it. `multiple` allows the flag to be repeated. */
export interface OptionSpec {
  readonly type: "string" | "boolean";
  readonly short?: string;
  readonly multiple?: boolean;
  /**
   * The value of the flag if it is given without one. For such a flag, a value in a separate word must begin with a
   * digit or a dot.
   */
  readonly bare?: string;
}

/** The flags of a verb, by long name without dashes. A name of a common flag may appear only with the same meaning. */
export type Options = Readonly<Record<string, OptionSpec>>;

/** The given values of the flags. Read them with the functions below. */
export type Values = Readonly<Record<string, string | boolean | readonly (string | boolean)[] | undefined>>;

/** Whether a boolean flag is set. */
export function isGiven(values: Values, flag: string): boolean {
  return values[flag] === true;
}

/** The value of a flag as a string; undefined if the flag is not set. */
export function textOf(values: Values, flag: string): string | undefined {
  const value = values[flag];
  return typeof value === "string" ? value : undefined;
}

/** All values of a flag that may be repeated. */
export function textsOf(values: Values, flag: string): readonly string[] {
  const value = values[flag];
  return Array.isArray(value) ? value.filter((one) => typeof one === "string") : [];
}

/** A duration in ms; undefined if the flag is not set. @throws CliError 64 */
export function durationOf(
  values: Values,
  flag: string,
  range?: { minMs?: number; maxMs?: number },
): number | undefined {
  const text = textOf(values, flag);
  return text === undefined ? undefined : parseDuration(`--${flag}`, text, range);
}

/** A whole number; undefined if the flag is not set. @throws CliError 64 */
export function wholeOf(values: Values, flag: string, { min, max }: { min: number; max: number }): number | undefined {
  const text = textOf(values, flag);
  if (text === undefined) return undefined;
  const number = /^\d+$/.test(text) ? Number(text) : Number.NaN;
  if (number >= min && number <= max) return number;
  throw usageError(`--${flag} must be a whole number, ${min} to ${max}; got "${text}"`);
}

/** One of the given words; undefined if the flag is not set. @throws CliError 64 */
export function wordOf<Word extends string>(values: Values, flag: string, words: readonly Word[]): Word | undefined {
  const text = textOf(values, flag);
  const word = words.find((one) => one === text);
  if (text === undefined || word !== undefined) return word;
  throw usageError(`--${flag} must be one of ${words.join(", ")}; got "${text}"`);
}

/** Returns the only positional of a verb, the name of a lock: 1 to 512 bytes. @throws CliError 64 */
export function nameOf(verb: string, positionals: readonly string[]): string {
  const [name, extra] = positionals;
  if (name === undefined || name === "") throw usageError(`${verb} needs the NAME of a lock`);
  if (extra !== undefined) throw usageError(`${verb} takes one NAME; got "${name}" and "${extra}"`);
  if (Buffer.byteLength(name) > 512) throw usageError(`NAME must be 1 to 512 bytes; got ${Buffer.byteLength(name)}`);
  return name;
}

import type { Bytes } from "../bytes.js";
import type { Database } from "../database.js";
import { type CommandReply, ReplyError } from "../reply.js";

/** What a command may touch. */
export interface Context {
  readonly database: Database;
  /** The instant of the running script, in µs since 1970. */
  readonly nowUs: number;
  /** @returns how many connections receive it */
  publish(channel: Bytes, message: Bytes): number;
  /** @returns how many connections listen on the channel */
  subscribers(channel: Bytes): number;
}

/** One command. Its arguments come without its name. */
export interface Command {
  /** Fewest and most arguments. */
  readonly arity: readonly [least: number, most: number];
  readonly run: (context: Context, args: readonly Bytes[]) => CommandReply;
}

/** The commands of one type of value, by their names in capitals. */
export type Commands = { readonly [name: string]: Command };

/** No limit to the number of arguments. */
export const MANY: number = Infinity;

/** The argument at `index`, which the arity or the caller's own check has shown to be there. */
export function at(args: readonly Bytes[], index: number): Bytes {
  return args[index] as Bytes;
}

/** For commands that check more than the table can say. */
export function wrongArity(name: string): ReplyError {
  return new ReplyError(`ERR wrong number of arguments for '${name}' command`);
}

/** The part of a sequence between two indices as the server counts them: both inclusive, negative ones from the end. */
export function sliceOf<Item>(items: readonly Item[], start: number, stop: number): Item[] {
  const first = Math.max(0, start < 0 ? items.length + start : start);
  const last = stop < 0 ? items.length + stop : stop;
  return last < first ? [] : items.slice(first, last + 1);
}

import type { Bytes } from "../bytes.js";
import type { Database } from "../database.js";
import { type CommandReply, ReplyError } from "../reply.js";

/** The state of the server that a command can use. */
export interface Context {
  readonly database: Database;
  /** The time of the running script, in µs since 1970. */
  readonly nowUs: number;
  /** Publishes a message. @returns the number of connections that receive it */
  publish(channel: Bytes, message: Bytes): number;
  /** @returns the number of connections that are subscribed to the channel */
  subscribers(channel: Bytes): number;
}

/** A command. Its arguments do not include its name. */
export interface Command {
  /** Minimum and maximum number of arguments. */
  readonly arity: readonly [least: number, most: number];
  readonly run: (context: Context, args: readonly Bytes[]) => CommandReply;
}

/** The commands for one type of value, by their names in uppercase. */
export type Commands = { readonly [name: string]: Command };

/** Stands for an unlimited number of arguments. */
export const MANY: number = Infinity;

/** Returns the argument at `index`. The arity check or the caller must ensure that it exists. */
export function at(args: readonly Bytes[], index: number): Bytes {
  return args[index] as Bytes;
}

/** Creates the error for a wrong number of arguments, for commands with rules that `arity` cannot express. */
export function wrongArity(name: string): ReplyError {
  return new ReplyError(`ERR wrong number of arguments for '${name}' command`);
}

/** Returns the items between two indices, both inclusive. As on a server, negative indices count from the end. */
export function sliceOf<Item>(items: readonly Item[], start: number, stop: number): Item[] {
  const first = Math.max(0, start < 0 ? items.length + start : start);
  const last = stop < 0 ? items.length + stop : stop;
  return last < first ? [] : items.slice(first, last + 1);
}

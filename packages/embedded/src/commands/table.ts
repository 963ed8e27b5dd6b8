/** All commands that scripts can call, by their names in uppercase. The server rejects any other command as unknown. */
import type { Bytes } from "../bytes.js";
import { type CommandReply, ReplyError } from "../reply.js";
import type { Command, Context } from "./command.js";
import { hashes } from "./hashes.js";
import { keys } from "./keys.js";
import { lists } from "./lists.js";
import { scanning } from "./scan.js";
import { server } from "./server.js";
import { sets } from "./sets.js";
import { sortedSets } from "./sorted-sets.js";
import { streams } from "./streams.js";
import { strings } from "./strings.js";

const TABLE: ReadonlyMap<string, Command> = new Map(
  [strings, keys, hashes, sets, sortedSets, lists, streams, scanning, server].flatMap((commands) =>
    Object.entries(commands),
  ),
);

/** The names of all commands, sorted. */
export const COMMANDS: readonly string[] = [...TABLE.keys()].sort();

/**
 * Runs one command of a script.
 *
 * @throws ReplyError  the error that the server replies with
 */
export function execute(context: Context, words: readonly Bytes[]): CommandReply {
  const [name = "", ...args] = words;
  const command = TABLE.get(name) ?? TABLE.get(name.toUpperCase());
  if (command === undefined) throw new ReplyError("ERR Unknown Redis command called from script");
  const [least, most] = command.arity;
  if (args.length < least || args.length > most) {
    throw new ReplyError("ERR Wrong number of args calling Redis command from script");
  }
  return command.run(context, args);
}

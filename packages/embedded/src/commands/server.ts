import type { Bytes } from "../bytes.js";
import { type CommandReply, ReplyError } from "../reply.js";
import { at, type Commands, type Context, MANY } from "./command.js";

/** Commands that use no key. */
export const server: Commands = {
  PUBLISH: { arity: [2, 2], run: (context, args) => context.publish(at(args, 0), at(args, 1)) },
  PUBSUB: { arity: [1, MANY], run: pubsub },
  // An embedded server is one shard, so sharded channels work like all others.
  SPUBLISH: { arity: [2, 2], run: (context, args) => context.publish(at(args, 0), at(args, 1)) },
  TIME: {
    arity: [0, 0],
    run: ({ nowUs }) => [String(Math.floor(nowUs / 1_000_000)), String(nowUs % 1_000_000)],
  },
};

/** Implements only PUBSUB NUMSUB, because scripts do not need the other subcommands. */
function pubsub(context: Context, [subcommand = "", ...channels]: readonly Bytes[]): CommandReply {
  if (subcommand.toUpperCase() !== "NUMSUB") throw new ReplyError("ERR only PUBSUB NUMSUB is supported");
  return channels.flatMap((channel) => [channel, context.subscribers(channel)]);
}

import { at, type Commands } from "./command.js";

/** Commands that touch no key. */
export const server: Commands = {
  PUBLISH: { arity: [2, 2], run: (context, args) => context.publish(at(args, 0), at(args, 1)) },
  // One server is one shard, so both kinds of channel are the same here.
  SPUBLISH: { arity: [2, 2], run: (context, args) => context.publish(at(args, 0), at(args, 1)) },
  TIME: {
    arity: [0, 0],
    run: ({ nowUs }) => [String(Math.floor(nowUs / 1_000_000)), String(nowUs % 1_000_000)],
  },
};

import type { Bytes } from "../bytes.js";
import { parseInteger } from "../number-text.js";
import { type CommandReply, ReplyError } from "../reply.js";
import { at, type Commands, type Context, MANY, sliceOf, wrongArity } from "./command.js";

/** Commands for lists. */
export const lists: Commands = {
  LPUSH: { arity: [2, MANY], run: (context, args) => push(context, args, "left") },
  RPUSH: { arity: [2, MANY], run: (context, args) => push(context, args, "right") },
  LPOP: { arity: [1, MANY], run: (context, args) => pop(context, args, "left") },
  RPOP: { arity: [1, MANY], run: (context, args) => pop(context, args, "right") },
  LLEN: { arity: [1, 1], run: ({ database }, args) => database.get(at(args, 0), "list")?.length ?? 0 },
  LRANGE: {
    arity: [3, 3],
    run({ database }, args) {
      const [start, stop] = [parseInteger(at(args, 1)), parseInteger(at(args, 2))];
      return sliceOf(database.get(at(args, 0), "list") ?? [], start, stop);
    },
  },
  LREM: { arity: [3, 3], run: remove },
};

type End = "left" | "right";

function push({ database }: Context, [key = "", ...items]: readonly Bytes[], end: End): number {
  const list = database.open(key, "list");
  for (const item of items) {
    if (end === "left") list.unshift(item);
    else list.push(item);
  }
  return list.length;
}

function pop({ database }: Context, args: readonly Bytes[], end: End): CommandReply {
  const key = at(args, 0);
  const countText = args[1];
  if (args.length > 2) throw wrongArity(end === "left" ? "lpop" : "rpop");
  const count = countText === undefined ? 1 : positive(countText);
  const list = database.get(key, "list");
  if (list === undefined) return null;
  const popped = end === "left" ? list.splice(0, count) : list.splice(Math.max(0, list.length - count)).reverse();
  database.tidy(key);
  return countText === undefined ? (popped[0] ?? null) : popped;
}

function positive(text: Bytes): number {
  const complaint = "ERR value is out of range, must be positive";
  const count = parseInteger(text, complaint);
  if (count < 0) throw new ReplyError(complaint);
  return count;
}

/** Removes up to |count| matching items: from the head if positive, from the tail if negative, all if zero. */
function remove({ database }: Context, args: readonly Bytes[]): number {
  const [key, wanted] = [at(args, 0), at(args, 2)];
  const count = parseInteger(at(args, 1));
  const list = database.get(key, "list");
  if (list === undefined) return 0;
  const most = count === 0 ? Infinity : Math.abs(count);
  let removed = 0;
  const stays = (item: Bytes): boolean => item !== wanted || removed++ >= most;
  const kept = count < 0 ? list.toReversed().filter(stays).reverse() : list.filter(stays);
  const before = list.length;
  list.splice(0, before, ...kept);
  database.tidy(key);
  return before - kept.length;
}

import type { Bytes } from "../bytes.js";
import { addIntegers, parseBigInteger } from "../number-text.js";
import { ReplyError } from "../reply.js";
import { at, type Commands, type Context, MANY, wrongArity } from "./command.js";

/** Commands for hashes. */
export const hashes: Commands = {
  HSET: { arity: [3, MANY], run: set },
  HGET: { arity: [2, 2], run: ({ database }, args) => database.get(at(args, 0), "hash")?.get(at(args, 1)) ?? null },
  HMGET: {
    arity: [2, MANY],
    run({ database }, [key = "", ...fields]) {
      const hash = database.get(key, "hash");
      return fields.map((field) => hash?.get(field) ?? null);
    },
  },
  HGETALL: {
    arity: [1, 1],
    run: ({ database }, args) => [...(database.get(at(args, 0), "hash") ?? [])].flat(),
  },
  HDEL: {
    arity: [2, MANY],
    run({ database }, [key = "", ...fields]) {
      const hash = database.get(key, "hash");
      const removed = fields.filter((field) => hash?.delete(field)).length;
      database.tidy(key);
      return removed;
    },
  },
  HLEN: { arity: [1, 1], run: ({ database }, args) => database.get(at(args, 0), "hash")?.size ?? 0 },
  HEXISTS: {
    arity: [2, 2],
    run: ({ database }, args) => (database.get(at(args, 0), "hash")?.has(at(args, 1)) ? 1 : 0),
  },
  HINCRBY: { arity: [3, 3], run: increment },
};

function set({ database }: Context, args: readonly Bytes[]): number {
  if (args.length % 2 === 0) throw wrongArity("hset");
  const hash = database.open(at(args, 0), "hash");
  const before = hash.size;
  for (let index = 1; index < args.length; index += 2) hash.set(at(args, index), at(args, index + 1));
  return hash.size - before;
}

function increment({ database }: Context, args: readonly Bytes[]): number {
  const [key, field] = [at(args, 0), at(args, 1)];
  const by = parseBigInteger(at(args, 2));
  if (by === undefined) throw new ReplyError("ERR value is not an integer or out of range");
  const present = parseBigInteger(database.get(key, "hash")?.get(field) ?? "0");
  if (present === undefined) throw new ReplyError("ERR hash value is not an integer");
  const sum = addIntegers(present, by);
  database.open(key, "hash").set(field, String(sum));
  return Number(sum);
}

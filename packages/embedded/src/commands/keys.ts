import type { Bytes } from "../bytes.js";
import { ReplyError, Status } from "../reply.js";
import { at, type Commands, type Context, MANY } from "./command.js";
import { expiryAtMs } from "./expiry.js";

type Condition = "NX" | "XX" | "GT" | "LT";

/** Commands for keys of any type and for their expiry. */
export const keys: Commands = {
  DEL: { arity: [1, MANY], run: ({ database }, args) => args.filter((key) => database.delete(key)).length },
  EXISTS: {
    arity: [1, MANY],
    run: ({ database }, args) => args.filter((key) => database.type(key) !== undefined).length,
  },
  TYPE: { arity: [1, 1], run: ({ database }, args) => new Status(database.type(at(args, 0)) ?? "none") },
  PTTL: { arity: [1, 1], run: ({ database }, args) => leftMs(database, at(args, 0)) },
  PERSIST: { arity: [1, 1], run: persist },
  PEXPIRE: { arity: [2, MANY], run: (context, args) => expire(context, "pexpire", args, context.database.nowMs) },
  PEXPIREAT: { arity: [2, MANY], run: (context, args) => expire(context, "pexpireat", args, 0) },
};

/** Returns the time until a key expires, in ms, like PTTL: -2 if there is no such key, -1 if it does not expire. */
export function leftMs(database: Context["database"], key: Bytes): number {
  const expiresAtMs = database.expiresAtMs(key);
  if (expiresAtMs === undefined) return -2;
  return expiresAtMs === Infinity ? -1 : expiresAtMs - database.nowMs;
}

function persist({ database }: Context, args: readonly Bytes[]): number {
  const expiresAtMs = database.expiresAtMs(at(args, 0));
  if (expiresAtMs === undefined || expiresAtMs === Infinity) return 0;
  database.expireAt(at(args, 0), Infinity);
  return 1;
}

function expire({ database }: Context, command: string, args: readonly Bytes[], baseMs: number): number {
  const key = at(args, 0);
  const conditions = readConditions(args.slice(2));
  const expiresAtMs = expiryAtMs(command, at(args, 1), 1n, baseMs);
  const presentMs = database.expiresAtMs(key);
  if (presentMs === undefined || !conditions.every((condition) => allows(condition, presentMs, expiresAtMs))) return 0;
  if (expiresAtMs <= database.nowMs) database.delete(key);
  else database.expireAt(key, expiresAtMs);
  return 1;
}

function readConditions(words: readonly Bytes[]): Condition[] {
  const found = words.map((word) => {
    const condition = word.toUpperCase();
    if (condition === "NX" || condition === "XX" || condition === "GT" || condition === "LT") return condition;
    throw new ReplyError(`ERR Unsupported option ${word}`);
  });
  if (found.includes("NX") && found.some((condition) => condition !== "NX")) {
    throw new ReplyError("ERR NX and XX, GT or LT options at the same time are not compatible");
  }
  if (found.includes("GT") && found.includes("LT")) {
    throw new ReplyError("ERR GT and LT options at the same time are not compatible");
  }
  return found;
}

/** Whether the condition allows the change. A key that does not expire counts as one with an infinite expiry. */
function allows(condition: Condition, presentMs: number, nextMs: number): boolean {
  switch (condition) {
    case "NX":
      return presentMs === Infinity;
    case "XX":
      return presentMs !== Infinity;
    case "GT":
      return nextMs > presentMs;
    case "LT":
      return nextMs < presentMs;
  }
}

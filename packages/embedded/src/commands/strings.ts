import type { Bytes } from "../bytes.js";
import { addIntegers, parseBigInteger, parseInteger } from "../number-text.js";
import { type CommandReply, OK, ReplyError, syntaxError } from "../reply.js";
import { at, type Commands, type Context, MANY } from "./command.js";
import { expiryAtMs } from "./expiry.js";

interface SetOptions {
  readonly onlyIf: "absent" | "present" | undefined;
  readonly answersOld: boolean;
  readonly keepsExpiry: boolean;
  readonly expiry: { readonly unit: string; readonly text: Bytes } | undefined;
}

const UNITS: readonly string[] = ["EX", "PX", "EXAT", "PXAT"];

/** Commands for strings. */
export const strings: Commands = {
  GET: { arity: [1, 1], run: ({ database }, args) => database.get(at(args, 0), "string") ?? null },
  SET: { arity: [2, MANY], run: set },
  PSETEX: { arity: [3, 3], run: psetex },
  INCR: { arity: [1, 1], run: (context, args) => increment(context, at(args, 0), 1n) },
  INCRBY: {
    arity: [2, 2],
    run: (context, args) => increment(context, at(args, 0), integer(at(args, 1))),
  },
};

function set({ database }: Context, args: readonly Bytes[]): CommandReply {
  const key = at(args, 0);
  const options = readOptions(args.slice(2));
  const expiresAtMs =
    options.expiry === undefined
      ? Infinity
      : absoluteMs("set", options.expiry.unit, options.expiry.text, database.nowMs);
  // Read the old value first, because a value of another type is an error even if NX or XX prevents the write.
  const old = options.answersOld ? (database.get(key, "string") ?? null) : null;
  const isPresent = database.type(key) !== undefined;
  if (options.onlyIf === (isPresent ? "absent" : "present")) return old;
  const kept = options.keepsExpiry ? (database.expiresAtMs(key) ?? Infinity) : expiresAtMs;
  database.setString(key, at(args, 1), kept);
  return options.answersOld ? old : OK;
}

function psetex({ database }: Context, args: readonly Bytes[]): CommandReply {
  database.setString(at(args, 0), at(args, 2), absoluteMs("psetex", "PX", at(args, 1), database.nowMs));
  return OK;
}

function readOptions(words: readonly Bytes[]): SetOptions {
  let onlyIf: SetOptions["onlyIf"];
  let answersOld = false;
  let keepsExpiry = false;
  let expiry: SetOptions["expiry"];
  for (let index = 0; index < words.length; index++) {
    const word = at(words, index).toUpperCase();
    if (word === "NX" && onlyIf !== "present") onlyIf = "absent";
    else if (word === "XX" && onlyIf !== "absent") onlyIf = "present";
    else if (word === "GET") answersOld = true;
    else if (word === "KEEPTTL" && expiry === undefined) keepsExpiry = true;
    else if (
      UNITS.includes(word) &&
      !keepsExpiry &&
      (expiry === undefined || expiry.unit === word) &&
      index + 1 < words.length
    ) {
      index++;
      expiry = { unit: word, text: at(words, index) };
    } else throw syntaxError();
  }
  return { onlyIf, answersOld, keepsExpiry, expiry };
}

function absoluteMs(command: string, unit: string, text: Bytes, nowMs: number): number {
  if (parseInteger(text) <= 0) throw new ReplyError(`ERR invalid expire time in '${command}' command`);
  return expiryAtMs(command, text, unit.startsWith("EX") ? 1000n : 1n, unit.endsWith("AT") ? 0 : nowMs);
}

function increment({ database }: Context, key: Bytes, by: bigint): number {
  const sum = addIntegers(integer(database.get(key, "string") ?? "0"), by);
  database.setString(key, String(sum), database.expiresAtMs(key) ?? Infinity);
  return Number(sum);
}

function integer(text: Bytes): bigint {
  const value = parseBigInteger(text);
  if (value === undefined) throw new ReplyError("ERR value is not an integer or out of range");
  return value;
}

/**
 * SCAN lists keys page by page. A key that exists from the first page to the last is listed at least once.
 *
 * A page is a range of hashes, like a range of buckets on a server. So keys that are added or deleted between
 * pages do not move other keys to another page.
 */
import type { Bytes } from "../bytes.js";
import { parseInteger } from "../number-text.js";
import { type CommandReply, ReplyError, syntaxError } from "../reply.js";
import { at, type Commands, type Context, MANY } from "./command.js";
import { fits } from "./pattern.js";

/** The SCAN command. */
export const scanning: Commands = { SCAN: { arity: [1, MANY], run: scan } };

const USUAL_COUNT = 10;

function scan({ database }: Context, args: readonly Bytes[]): CommandReply {
  const from = at(args, 0);
  if (!/^\d+$/.test(from)) throw new ReplyError("ERR invalid cursor");
  let pattern: Bytes = "*";
  let count = USUAL_COUNT;
  for (let index = 1; index < args.length; index += 2) {
    const value = args[index + 1];
    const option = at(args, index).toUpperCase();
    if (value === undefined) throw syntaxError();
    if (option === "MATCH") pattern = value;
    else if (option === "COUNT") {
      count = Number(parseInteger(value));
      if (count < 1) throw syntaxError();
    } else throw syntaxError();
  }

  const rest = database
    .keys()
    .map((key) => ({ key, hash: hashOf(key) }))
    .filter(({ hash }) => hash >= Number(from))
    .sort((one, other) => one.hash - other.hash);
  const last = rest[count - 1]?.hash;
  // All keys with the same hash are on one page, because a cursor cannot point between them.
  const page = last === undefined ? rest : rest.filter(({ hash }) => hash <= last);
  const next = rest[page.length]?.hash;
  return [String(next ?? 0), page.map(({ key }) => key).filter((key) => fits(pattern, key))];
}

/** 32-bit FNV-1a, but at least 1, because the cursor 0 means the end. */
function hashOf(key: Bytes): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < key.length; index += 1) {
    hash = Math.imul(hash ^ key.charCodeAt(index), 0x01000193) >>> 0;
  }
  return Math.max(1, hash);
}

/**
 * SCAN: keys page by page, each at least once that is there from the first page to the last.
 *
 * A page is a stretch of hashes, as it is one of buckets on a server: keys that come or go meanwhile do not move the others.
 */
import type { Bytes } from "../bytes.js";
import { parseInteger } from "../number-text.js";
import { type CommandReply, ReplyError, syntaxError } from "../reply.js";
import { at, type Commands, type Context, MANY } from "./command.js";
import { fits } from "./pattern.js";

/** The command that lists keys. */
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
  // All keys of one hash come together, since a cursor cannot stand between them.
  const page = last === undefined ? rest : rest.filter(({ hash }) => hash <= last);
  const next = rest[page.length]?.hash;
  return [String(next ?? 0), page.map(({ key }) => key).filter((key) => fits(pattern, key))];
}

/** FNV-1a, 32 bits, from 1 on: where 0 is the end, no page may begin at it. */
function hashOf(key: Bytes): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < key.length; index += 1) {
    hash = Math.imul(hash ^ key.charCodeAt(index), 0x01000193) >>> 0;
  }
  return Math.max(1, hash);
}

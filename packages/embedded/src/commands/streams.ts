import type { Bytes } from "../bytes.js";
import { parseInteger } from "../number-text.js";
import { type CommandReply, ReplyError, syntaxError } from "../reply.js";
import { compareIds, type StreamEntry, type StreamId } from "../stream.js";
import { at, type Commands, type Context, MANY, wrongArity } from "./command.js";

/** Commands for streams. Only the commands for a log that is read from the end are implemented. */
export const streams: Commands = {
  XADD: { arity: [4, MANY], run: add },
  XLEN: { arity: [1, 1], run: ({ database }, args) => database.get(at(args, 0), "stream")?.size ?? 0 },
  XREVRANGE: { arity: [3, MANY], run: backwards },
};

const FIRST: StreamId = [0, 0];
const LAST: StreamId = [Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER];

function add({ database }: Context, args: readonly Bytes[]): CommandReply {
  const key = at(args, 0);
  let next = 1;
  let most: number | undefined;
  if (at(args, next).toUpperCase() === "MAXLEN") {
    // On a server, `~` trims approximately, and `=` or nothing trims exactly. Here, trimming is always exact.
    next += args[next + 1] === "~" || args[next + 1] === "=" ? 2 : 1;
    const text = args[next];
    if (text === undefined) throw syntaxError();
    most = parseInteger(text);
    if (most < 0) throw new ReplyError("ERR The MAXLEN argument must be >= 0.");
    next += 1;
  }
  const wanted = args[next];
  const fields = args.slice(next + 1);
  if (wanted === undefined || fields.length < 2 || fields.length % 2 !== 0) throw wrongArity("xadd");
  const given = wanted === "*" ? undefined : parseId(wanted, 0);
  const present = database.get(key, "stream");
  if (given !== undefined && compareIds(given, present?.last ?? FIRST) <= 0) {
    throw new ReplyError(
      compareIds(given, FIRST) === 0
        ? "ERR The ID specified in XADD must be greater than 0-0"
        : "ERR The ID specified in XADD is equal or smaller than the target stream top item",
    );
  }
  const stream = database.open(key, "stream");
  const entry: StreamEntry = { id: given ?? stream.nextId(database.nowMs), fields };
  stream.add(entry);
  if (most !== undefined) stream.trim(most);
  return textOf(entry.id);
}

function backwards({ database }: Context, args: readonly Bytes[]): CommandReply {
  const to = boundOf(at(args, 1), Number.MAX_SAFE_INTEGER);
  const from = boundOf(at(args, 2), 0);
  let count = Infinity;
  if (args.length > 3) {
    if (args.length !== 5 || at(args, 3).toUpperCase() !== "COUNT") throw syntaxError();
    count = Math.max(0, parseInteger(at(args, 4)));
    if (count === 0) return null;
  }
  const found = database.get(at(args, 0), "stream")?.backwards(from.id, to.id) ?? [];
  const isOut = ({ id }: StreamEntry): boolean =>
    (to.isOpen && compareIds(id, to.id) === 0) || (from.isOpen && compareIds(id, from.id) === 0);
  return found
    .filter((entry) => !isOut(entry))
    .slice(0, count)
    .map(({ id, fields }) => [textOf(id), fields]);
}

/** Parses a bound of a range. A bound that begins with `(` is exclusive. */
function boundOf(text: Bytes, sequence: number): { readonly id: StreamId; readonly isOpen: boolean } {
  if (text === "-") return { id: FIRST, isOpen: false };
  if (text === "+") return { id: LAST, isOpen: false };
  const isOpen = text.startsWith("(");
  return { id: parseId(isOpen ? text.slice(1) : text, sequence), isOpen };
}

function parseId(text: Bytes, sequence: number): StreamId {
  const [, ms, number] = /^(\d{1,16})(?:-(\d{1,16}))?$/.exec(text) ?? [];
  if (ms === undefined) throw new ReplyError("ERR Invalid stream ID specified as stream command argument");
  return [Number(ms), number === undefined ? sequence : Number(number)];
}

function textOf([ms, sequence]: StreamId): Bytes {
  return `${ms}-${sequence}`;
}

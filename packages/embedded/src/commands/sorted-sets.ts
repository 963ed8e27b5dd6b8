import type { Bytes } from "../bytes.js";
import { formatDouble, parseDouble, parseInteger } from "../number-text.js";
import { type CommandReply, ReplyError, syntaxError } from "../reply.js";
import type { Scored, SortedSet } from "../sorted-set.js";
import { at, type Commands, type Context, MANY } from "./command.js";
import { ranges, withinScores } from "./sorted-set-ranges.js";

/** Commands for sorted sets. */
export const sortedSets: Commands = {
  ...ranges,
  ZADD: { arity: [3, MANY], run: add },
  ZINCRBY: { arity: [3, 3], run: increment },
  ZREM: {
    arity: [2, MANY],
    run({ database }, [key = "", ...members]) {
      const sorted = database.get(key, "zset");
      const removed = members.filter((member) => sorted?.remove(member)).length;
      database.tidy(key);
      return removed;
    },
  },
  ZCARD: { arity: [1, 1], run: ({ database }, args) => database.get(at(args, 0), "zset")?.size ?? 0 },
  ZSCORE: {
    arity: [2, 2],
    run({ database }, args) {
      const score = database.get(at(args, 0), "zset")?.score(at(args, 1));
      return score === undefined ? null : formatDouble(score);
    },
  },
  ZRANK: { arity: [2, 2], run: ({ database }, args) => database.get(at(args, 0), "zset")?.rank(at(args, 1)) ?? null },
  ZREMRANGEBYSCORE: {
    arity: [3, 3],
    run({ database }, args) {
      const { first, count } = withinScores(at(args, 1), at(args, 2))(database.get(at(args, 0), "zset"));
      database.get(at(args, 0), "zset")?.removeRange(first, count);
      database.tidy(at(args, 0));
      return count;
    },
  },
  ZPOPMIN: { arity: [1, MANY], run: (context, args) => pop(context, args, "min") },
  ZPOPMAX: { arity: [1, MANY], run: (context, args) => pop(context, args, "max") },
};

const OPTIONS: readonly string[] = ["NX", "XX", "GT", "LT", "CH"];

function add({ database }: Context, args: readonly Bytes[]): number {
  const key = at(args, 0);
  let first = 1;
  const options = new Set<string>();
  while (first < args.length && OPTIONS.includes(at(args, first).toUpperCase())) {
    options.add(at(args, first).toUpperCase());
    first++;
  }
  const pairs = args.slice(first);
  if (pairs.length === 0 || pairs.length % 2 === 1) throw syntaxError();
  checkOptions(options);
  const scored: Scored[] = [];
  for (let index = 0; index < pairs.length; index += 2) {
    scored.push({ score: parseDouble(at(pairs, index)), member: at(pairs, index + 1) });
  }
  if (options.has("XX") && database.get(key, "zset") === undefined) return 0;
  const sorted = database.open(key, "zset");
  const counts = { added: 0, changed: 0 };
  for (const { member, score } of scored) addOne(sorted, member, score, options, counts);
  database.tidy(key);
  return options.has("CH") ? counts.added + counts.changed : counts.added;
}

function checkOptions(options: ReadonlySet<string>): void {
  if (options.has("NX") && options.has("XX")) {
    throw new ReplyError("ERR XX and NX options at the same time are not compatible");
  }
  if ([options.has("NX"), options.has("GT"), options.has("LT")].filter(Boolean).length > 1) {
    throw new ReplyError("ERR GT, LT, and/or NX options at the same time are not compatible");
  }
}

function addOne(
  sorted: SortedSet,
  member: Bytes,
  score: number,
  options: ReadonlySet<string>,
  counts: { added: number; changed: number },
): void {
  const present = sorted.score(member);
  if (present === undefined) {
    if (options.has("XX")) return;
    counts.added++;
  } else {
    if (options.has("NX") || score === present) return;
    if ((options.has("GT") && score < present) || (options.has("LT") && score > present)) return;
    counts.changed++;
  }
  sorted.set(member, score);
}

function increment({ database }: Context, args: readonly Bytes[]): string {
  const [key, member] = [at(args, 0), at(args, 2)];
  const by = parseDouble(at(args, 1));
  const present = database.get(key, "zset")?.score(member);
  const score = present === undefined ? by : present + by;
  if (Number.isNaN(score)) throw new ReplyError("ERR resulting score is not a number (NaN)");
  database.open(key, "zset").set(member, score);
  return formatDouble(score);
}

function pop({ database }: Context, args: readonly Bytes[], end: "min" | "max"): CommandReply {
  const key = at(args, 0);
  if (args.length > 2) throw syntaxError();
  const complaint = "ERR value is out of range, must be positive";
  const count = args[1] === undefined ? 1 : parseInteger(args[1], complaint);
  if (count < 0) throw new ReplyError(complaint);
  const sorted = database.get(key, "zset");
  if (sorted === undefined) return [];
  const popped =
    end === "min"
      ? sorted.removeRange(0, count)
      : sorted.removeRange(Math.max(0, sorted.size - count), count).reverse();
  database.tidy(key);
  return popped.flatMap(({ member, score }) => [member, formatDouble(score)]);
}

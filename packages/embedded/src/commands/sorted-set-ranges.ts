/** Reads part of a sorted set, by rank or by score. */
import type { Bytes } from "../bytes.js";
import { formatDouble, parseInteger, readDouble } from "../number-text.js";
import { ReplyError, syntaxError } from "../reply.js";
import type { Scored, SortedSet } from "../sorted-set.js";
import { at, type Commands, type Context, MANY, sliceOf } from "./command.js";

/** Commands that read part of a sorted set. */
export const ranges: Commands = {
  ZRANGE: {
    arity: [3, MANY],
    run: (context, args) => range(context, args, readOptions(args.slice(3), ["BYSCORE", "REV", "LIMIT", "WITHSCORES"])),
  },
  ZREVRANGE: {
    arity: [3, MANY],
    run: (context, args) => range(context, args, { ...readOptions(args.slice(3), ["WITHSCORES"]), isReversed: true }),
  },
  ZRANGEBYSCORE: {
    arity: [3, MANY],
    run: (context, args) =>
      range(context, args, { ...readOptions(args.slice(3), ["WITHSCORES", "LIMIT"]), isByScore: true }),
  },
  ZCOUNT: {
    arity: [3, 3],
    run({ database }, args) {
      const within = withinScores(at(args, 1), at(args, 2));
      return within(database.get(at(args, 0), "zset")).count;
    },
  },
};

interface RangeOptions {
  readonly isByScore: boolean;
  readonly isReversed: boolean;
  readonly withScores: boolean;
  readonly limit: { readonly offset: number; readonly count: number } | undefined;
}

function readOptions(words: readonly Bytes[], known: readonly string[]): RangeOptions {
  const given = new Set<string>();
  let limit: RangeOptions["limit"];
  for (let index = 0; index < words.length; index++) {
    const word = at(words, index).toUpperCase();
    const isRepeated = given.has(word) && (word === "REV" || word === "BYSCORE");
    if (!known.includes(word) || isRepeated) throw syntaxError();
    given.add(word);
    if (word === "LIMIT") {
      if (index + 2 >= words.length) throw syntaxError();
      limit = { offset: parseInteger(at(words, index + 1)), count: parseInteger(at(words, index + 2)) };
      index += 2;
    }
  }
  const isZrange = known.includes("BYSCORE");
  if (isZrange && limit !== undefined && limit.count !== -1 && !given.has("BYSCORE")) {
    throw new ReplyError("ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX");
  }
  return {
    isByScore: given.has("BYSCORE"),
    isReversed: given.has("REV"),
    withScores: given.has("WITHSCORES"),
    limit,
  };
}

function range({ database }: Context, args: readonly Bytes[], options: RangeOptions): Bytes[] {
  const [key, start, stop] = [at(args, 0), at(args, 1), at(args, 2)];
  const chosen = options.isByScore
    ? byScore(start, stop, options)(() => database.get(key, "zset"))
    : byRank(start, stop, options)(() => database.get(key, "zset"));
  return chosen.flatMap(({ member, score }) => (options.withScores ? [member, formatDouble(score)] : [member]));
}

/**
 * Selects members. Takes a function so that bounds are parsed before the key is read: an invalid bound is an error
 * even if the key has another type.
 */
type Choice = (sorted: () => SortedSet | undefined) => Scored[];

function byRank(startText: Bytes, stopText: Bytes, { isReversed }: RangeOptions): Choice {
  const [start, stop] = [parseInteger(startText), parseInteger(stopText)];
  return (sorted) => {
    const all = sorted()?.ordered ?? [];
    return sliceOf(isReversed ? all.toReversed() : all, start, stop);
  };
}

function byScore(start: Bytes, stop: Bytes, { isReversed, limit }: RangeOptions): Choice {
  const within = isReversed ? withinScores(stop, start) : withinScores(start, stop);
  return (sorted) => {
    const set = sorted();
    const { first, count } = within(set);
    const chosen = set?.ordered.slice(first, first + count) ?? [];
    if (isReversed) chosen.reverse();
    if (limit === undefined) return chosen;
    if (limit.offset < 0) return [];
    return chosen.slice(limit.offset, limit.count < 0 ? undefined : limit.offset + limit.count);
  };
}

/**
 * Parses two bounds and returns a function that finds the members between them in a sorted set. A bound that begins
 * with `(` is exclusive.
 *
 * @throws ReplyError  a bound is not a number
 */
export function withinScores(
  minText: Bytes,
  maxText: Bytes,
): (sorted: SortedSet | undefined) => { readonly first: number; readonly count: number } {
  const [min, max] = [bound(minText), bound(maxText)];
  return (sorted) => {
    const all = sorted?.ordered ?? [];
    const first = countWhile(all, (score) => (min.isExcluded ? score <= min.score : score < min.score));
    const end = countWhile(all, (score) => (max.isExcluded ? score < max.score : score <= max.score));
    return { first, count: Math.max(0, end - first) };
  };
}

function bound(text: Bytes): { readonly score: number; readonly isExcluded: boolean } {
  const isExcluded = text.startsWith("(");
  // Bounds are parsed more leniently than scores: leading whitespace is ignored, and an empty bound is zero.
  const digits = (isExcluded ? text.slice(1) : text).replace(/^[ \t-\r]+(?=.)/, "");
  const score = digits === "" ? 0 : readDouble(digits);
  if (Number.isNaN(score)) throw new ReplyError("ERR min or max is not a float");
  return { score, isExcluded };
}

/** Returns the number of leading items whose score passes. The items must be ordered by score. */
function countWhile(items: readonly Scored[], passes: (score: number) => boolean): number {
  let low = 0;
  let high = items.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (passes((items[middle] as Scored).score)) low = middle + 1;
    else high = middle;
  }
  return low;
}

import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { DumpedKey } from "../src/index.js";
import { type Answer, embeddedServer, realServer, type TestServer } from "./both-servers.js";

/** All times are multiples of this and are compared rounded to it, so a slow machine changes nothing. */
const LONG_MS = 10_000_000;

const embedded = embeddedServer();
let real: TestServer;
beforeAll(async () => {
  real = await realServer();
});
afterAll(() => real.stop());

const of = (...choices: string[]): fc.Arbitrary<string> => fc.constantFrom(...choices);
const key = of("a", "b", "c", "{k}:é", "nul\0", "😀 \n\r");
const text = fc.oneof(
  of("a", "b", "c", "", "1", "-7", "10", "x\0y", "\0", "é", "😀", "\n"),
  fc.string({ maxLength: 6 }),
);
const score = of("0", "1", "1", "2", "2.5", "-3", "1e3", "inf", "-inf", "0.1", "1763711220000000", "bad", "");
const bound = fc.oneof(
  score,
  score.map((value) => `(${value})`.slice(0, -1)),
  of("-inf", "+inf", " 1", "(", "-0"),
);
const index = of("0", "1", "2", "-1", "-2", "100", "-100", "x", "9223372036854775807", "9223372036854775808");
const count = of("0", "1", "2", "5", "-1", "x");
const expiry = of(`${LONG_MS}`, `${2 * LONG_MS}`, `${3 * LONG_MS}`, "-1", "0", "x");

function call(name: string, ...words: fc.Arbitrary<string | string[]>[]): fc.Arbitrary<string[]> {
  return fc.tuple(...words).map((parts) => [name, ...parts.flat()]);
}

function some(words: fc.Arbitrary<string | string[]>): fc.Arbitrary<string[]> {
  return fc.array(words, { maxLength: 3 }).map((parts) => parts.flat());
}

const pair = fc.tuple(text, text);
const scored = fc.tuple(score, text);
const setOption = fc.oneof(
  of("NX", "XX", "GET", "KEEPTTL", "what", "nx"),
  expiry.map((time) => ["PX", time]),
);
const limit = fc.oneof(
  fc.constant<string[]>([]),
  fc.tuple(count, count).map((pair) => ["LIMIT", ...pair]),
);

const command: fc.Arbitrary<string[]> = fc.oneof(
  call("GET", key),
  call("SET", key, text, some(setOption)),
  call("DEL", some(key)),
  call("EXISTS", some(key)),
  call("PEXPIRE", key, expiry, some(of("NX", "XX", "GT", "LT", "lt", "what"))),
  call("PEXPIREAT", key, of("4102444800000", "4202444800000", "1", "x"), some(of("GT", "LT"))),
  call("PERSIST", key),
  call("TYPE", key),
  call("INCR", key),
  call("INCRBY", key, of("5", "-3", "x", "9223372036854775807")),
  call("HSET", key, some(pair)),
  call("HGET", key, text),
  call("HMGET", key, some(text)),
  call("HDEL", key, some(text)),
  call("HLEN", key),
  call("HEXISTS", key, text),
  call("HINCRBY", key, text, of("5", "-3", "x", "9223372036854775807")),
  call("SADD", key, some(text)),
  call("SREM", key, some(text)),
  call("SCARD", key),
  call("SISMEMBER", key, text),
  call("ZADD", key, some(of("NX", "XX", "GT", "LT", "CH", "ch")), some(scored)),
  call("ZINCRBY", key, score, text),
  call("ZREM", key, some(text)),
  call("ZCARD", key),
  call("ZSCORE", key, text),
  call("ZRANK", key, text),
  call("ZRANGE", key, index, index, some(of("REV", "WITHSCORES", "what"))),
  call("ZRANGE", key, bound, bound, of("BYSCORE"), some(of("REV", "WITHSCORES")), limit),
  call("ZREVRANGE", key, index, index, some(of("WITHSCORES"))),
  call("ZRANGEBYSCORE", key, bound, bound, some(of("WITHSCORES")), limit),
  call("ZCOUNT", key, bound, bound),
  call("ZREMRANGEBYSCORE", key, bound, bound),
  call("ZPOPMIN", key, some(count)),
  call("ZPOPMAX", key, some(count)),
  call("LPUSH", key, some(text)),
  call("RPUSH", key, some(text)),
  call("LPOP", key, some(count)),
  call("RPOP", key, some(count)),
  call("LLEN", key),
  call("LRANGE", key, index, index),
  call("LREM", key, count, text),
  call("PUBLISH", text, text),
);

describe("the embedded server and Redis", () => {
  it("give the same replies to the same commands and end with the same keys", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(command, { minLength: 10, maxLength: 60 }), async (commands) => {
        await Promise.all([embedded.clear(), real.clear()]);
        const program = withDistinctTimes(commands);
        const [ours, theirs] = await Promise.all([embedded, real].map((server) => play(server, program)));
        expect(ours).toEqual(theirs);
      }),
      { numRuns: 150 },
    );
  });

  it("format numbers of any size the same way in a command", async () => {
    const number = fc.oneof(
      // Lua 5.1 also parses the word Infinity where C does. No script receives it, so it is excluded.
      fc.double({ noNaN: true, noDefaultInfinity: true }),
      fc.maxSafeInteger(),
      fc.bigInt({ min: -(2n ** 70n), max: 2n ** 70n }).map(Number),
      fc.maxSafeInteger().map((n) => n / 4),
      fc.integer().map((n) => n / 1000),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(number, { minLength: 1, maxLength: 50 }), async (numbers) => {
        const source = `local written = {}
          for i = 1, #ARGV do
            redis.call('SET', KEYS[1], tonumber(ARGV[i]) * 1)
            written[i] = redis.call('GET', KEYS[1])
          end
          return written`;
        // Lua 5.4 parses an integer as an integer. An exponent makes the number a double in both versions.
        const args = numbers.map((n) => (Number.isSafeInteger(n) ? String(n) : n.toExponential()));
        const [ours, theirs] = await Promise.all([embedded, real].map((server) => server.eval(source, ["n"], args)));
        expect(ours).toEqual(theirs);
      }),
      { numRuns: 40 },
    );
  });
});

/** Makes all expiry times distinct, because GT and LT compare a time with one that was set moments ago. */
function withDistinctTimes(commands: readonly string[][]): string[][] {
  return commands.map((words, i) =>
    words.map((word) => (/^[123]0{7}$/.test(word) ? String(Number(word) + i * 20_000) : word)),
  );
}

async function play(server: TestServer, commands: readonly string[][]): Promise<[string[], Answer][]> {
  const answers = await Promise.all(commands.map((words) => server.command(words)));
  const played = commands.map((words, at): [string[], Answer] => [words, answers[at] as Answer]);
  return [...played, [["dump"], { reply: (await server.dump()).map(coarse) }]];
}

function coarse(dumped: DumpedKey): DumpedKey {
  return { ...dumped, leftMs: dumped.leftMs < 0 ? dumped.leftMs : Math.round(dumped.leftMs / LONG_MS) };
}

import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type Answer, embeddedServer, realServer, type TestServer } from "./both-servers.js";

interface Case {
  readonly name: string;
  readonly source: string;
  readonly keys?: readonly string[];
  readonly args?: readonly (string | number)[];
  readonly answer: Answer;
}

const READONLY = { error: "ERR user_script:1: Attempt to modify a readonly table" };
const NO_NAME = { error: "ERR user_script:1: Script attempted to access nonexistent global variable 'leak'" };
const ODD = "{k}\0é😀\n\r\"'\\[[}";

const CASES: readonly Case[] = [
  { name: "nil ends a list", source: "return {1, 2, nil, 4}", answer: { reply: [1, 2] } },
  { name: "false is null and true is 1", source: "return {true, false, 3}", answer: { reply: [1, null, 3] } },
  { name: "a missing reply is null", source: "local x = 1", answer: { reply: null } },
  { name: "a number is truncated toward zero", source: "return {3.99, -3.99, -0.5}", answer: { reply: [3, -3, 0] } },
  { name: "a huge number wraps", source: "return 1e300", answer: { reply: -(2 ** 63) } },
  { name: "lists nest", source: "return {1, {2, {'a'}}}", answer: { reply: [1, [2, ["a"]]] } },
  { name: "fields without an index are dropped", source: "return {1, a = 2}", answer: { reply: [1] } },
  {
    name: "a reply is read without its metamethods",
    source: "return setmetatable({1}, {__index = function() error('read') end})",
    answer: { reply: [1] },
  },
  { name: "a status reply is its text", source: "return redis.status_reply('FINE')", answer: { reply: "FINE" } },
  {
    name: "a status comes back as a table",
    source: "return redis.call('SET', KEYS[1], 1).ok",
    keys: ["a"],
    answer: { reply: "OK" },
  },
  {
    name: "nil comes back as false",
    source: "return tostring(redis.call('GET', KEYS[1]))",
    keys: ["a"],
    answer: { reply: "false" },
  },
  { name: "an error reply is an error", source: "return redis.error_reply('MY own')", answer: { error: "MY own" } },
  { name: "an error of one word becomes ERR", source: "return redis.error_reply('own')", answer: { error: "ERR own" } },
  { name: "error() is an error", source: "error('own')", answer: { error: "ERR user_script:1: own" } },
  {
    name: "an error of a command ends the script",
    source: "redis.call('SET', KEYS[1], 1) redis.call('LPUSH', KEYS[1], 1)",
    keys: ["a"],
    answer: { error: "WRONGTYPE Operation against a key holding the wrong kind of value" },
  },
  {
    name: "writes before an error remain",
    source: "pcall(redis.call, 'SET', KEYS[1], 1) return redis.call('GET', KEYS[1])",
    keys: ["a"],
    answer: { reply: "1" },
  },
  {
    name: "a caught error is a string",
    source: "local ok, problem = pcall(redis.call, 'NOSUCH') return {tostring(ok), problem}",
    answer: { reply: ["false", "ERR Unknown Redis command called from script"] },
  },
  {
    name: "a call without a command is an error",
    source: "redis.call()",
    answer: { error: "ERR Please specify at least one argument for this redis lib call" },
  },
  {
    name: "a table is not a valid argument",
    source: "redis.call('GET', {})",
    answer: { error: "ERR Lua redis lib command arguments must be strings or integers" },
  },
  {
    name: "true is not a valid argument",
    source: "redis.call('GET', true)",
    answer: { error: "ERR Lua redis lib command arguments must be strings or integers" },
  },
  { name: "a global cannot be written", source: "leak = 1", answer: READONLY },
  { name: "a function cannot become a global", source: "function leak() end", answer: READONLY },
  {
    name: "rawset cannot create a global",
    source: "rawset(_G, 'leak', 1)",
    answer: { error: "ERR Attempt to modify a readonly table" },
  },
  { name: "KEYS cannot be replaced", source: "KEYS = {}", answer: READONLY },
  { name: "a library cannot be written", source: "string.leak = 1", answer: READONLY },
  { name: "redis cannot be written", source: "redis.call = 1", answer: READONLY },
  { name: "an unknown global cannot be read", source: "return leak", answer: NO_NAME },
  {
    name: "microseconds keep every digit",
    source: "redis.call('SET', KEYS[1], ARGV[1] + 1) return {redis.call('GET', KEYS[1]), redis.call('INCR', KEYS[1])}",
    keys: ["n"],
    args: [1763711220000000],
    answer: { reply: ["1763711220000001", 1763711220000002] },
  },
  {
    name: "an integer reply is added and written",
    source:
      "redis.call('SET', KEYS[1], ARGV[1]) redis.call('SET', KEYS[1], redis.call('INCR', KEYS[1]) + 1) return redis.call('GET', KEYS[1])",
    keys: ["n"],
    args: ["9007199254740988"],
    answer: { reply: "9007199254740990" },
  },
  {
    name: "a whole quotient is written without a fraction",
    source: "redis.call('SET', KEYS[1], 6 / 2) return redis.call('GET', KEYS[1])",
    keys: ["n"],
    answer: { reply: "3" },
  },
  {
    name: "a fraction is written with 17 digits",
    source: "redis.call('SET', KEYS[1], 1 / 3) return redis.call('GET', KEYS[1])",
    keys: ["n"],
    answer: { reply: "0.33333333333333331" },
  },
  {
    name: "a product of microseconds stays exact",
    source:
      "local n = 1763711220 * 1000000 + 123456 redis.call('SET', KEYS[1], n) return {redis.call('GET', KEYS[1]), n, string.format('%.0f', n)}",
    keys: ["n"],
    answer: { reply: ["1763711220123456", 1763711220123456, "1763711220123456"] },
  },
  {
    name: "2^53 and one more are exact",
    source:
      "redis.call('SET', KEYS[1], ARGV[1]) redis.call('INCR', KEYS[1]) return {redis.call('GET', KEYS[1]), redis.call('INCRBY', KEYS[1], 0)}",
    keys: ["n"],
    args: ["9007199254740992"],
    answer: { reply: ["9007199254740993", 9007199254740992] },
  },
  {
    name: "keys and arguments can be any text",
    source:
      "redis.call('SET', KEYS[1], ARGV[1]) return {KEYS[1], redis.call('GET', KEYS[1]), redis.call('EXISTS', KEYS[1])}",
    keys: [ODD],
    args: [`v${ODD}`],
    answer: { reply: [ODD, `v${ODD}`, 1] },
  },
  {
    name: "a length counts bytes",
    source: "return {#ARGV[1], #ARGV[2], #ARGV[3]}",
    args: ["é😀", "\0\0", ""],
    answer: { reply: [6, 2, 0] },
  },
  {
    name: "text can be cut between bytes and joined again",
    source: "return string.sub(ARGV[1], 1, 1) .. string.sub(ARGV[1], 2)",
    args: ["é"],
    answer: { reply: "é" },
  },
  {
    name: "bytes beyond UTF-8 pass through a key",
    source:
      "redis.call('SET', KEYS[1], string.char(0, 255, 128)) return {string.byte(redis.call('GET', KEYS[1]), 1, -1)}",
    keys: ["b"],
    answer: { reply: [0, 255, 128] },
  },
  {
    name: "a long text passes unchanged",
    source: "return #ARGV[1]",
    args: ["x".repeat(300_000)],
    answer: { reply: 300_000 },
  },
];

describe.each<[string, () => Promise<TestServer>]>([
  ["the embedded server", async () => embeddedServer()],
  ["Redis", realServer],
])("in a script on %s", (_, start) => {
  let server: TestServer;
  beforeAll(async () => {
    server = await start();
  });
  beforeEach(() => server.clear());
  afterAll(() => server.stop());

  it.each(CASES.map((row) => [row.name, row] as const))("%s", async (_, { source, keys, args, answer }) => {
    expect(await server.eval(source, keys, args)).toEqual(answer);
  });

  it("an unknown command is an error", async () => {
    const { error } = (await server.eval("local x = 1\nredis.call('NOSUCH')")) as { error: string };
    expect(error).toBe("ERR Unknown Redis command called from script");
  });

  it("a source that is not valid Lua is refused", async () => {
    const { error } = (await server.eval("return return")) as { error: string };
    expect(error).toMatch(/^ERR Error compiling script \(new function\): user_script:1: /);
  });
});

describe("a script on the embedded server", () => {
  it("cannot access globals that only the embedded Lua has", async () => {
    const names = ["os", "io", "utf8", "load", "require", "print", "debug", "coroutine", "package", "warn"];
    for (const name of names) {
      expect(await embeddedServer().eval(`return ${name}`)).toEqual({
        error: `ERR user_script:1: Script attempted to access nonexistent global variable '${name}'`,
      });
    }
    const fields = "return {type(table.unpack), type(string.pack), type(math.type), type(math.random)}";
    expect(await embeddedServer().eval(fields)).toEqual({ reply: ["nil", "nil", "nil", "nil"] });
  });
});

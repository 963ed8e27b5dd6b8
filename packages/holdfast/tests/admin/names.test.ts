/** Name patterns, and parsing a key back into its lock. */
import { Redis } from "ioredis";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type RedisServer, startRedis } from "../../../../tests/support/redis-server.js";
import { readGlob } from "../../src/admin/glob.js";
import { keysOf, traceOf } from "../../src/admin/key-names.js";

let server: RedisServer;
let redis: Redis;
beforeAll(async () => {
  server = await startRedis();
  redis = new Redis(server.port);
});
afterAll(async () => {
  redis.disconnect();
  await server.stop();
});

const NAMES = [
  "order:1",
  "order:12",
  "ordér:1",
  "a",
  "",
  "*",
  "a*b",
  "[x]",
  "x]",
  "a\\b",
  "-",
  "^",
  "b-d",
  "c",
  "aXbXc",
  "aaab",
];
const PATTERNS = [
  ...[
    "*",
    "order:*",
    "order:?",
    "*1",
    "**",
    "a\\*b",
    "\\[x\\]",
    "[x]",
    "[^x]*",
    "[a-c]",
    "[c-a]",
    "[b",
    "[",
    "[]",
    "x]",
  ],
  ...[
    "*a*b",
    "a*b*c",
    "a\\\\b",
    "\\",
    "[\\]]*",
    "[a-]",
    "[-]",
    "[\\^]",
    "o[rR]der:[0-9]",
    "?",
    "??",
    "ord?r:1",
    "*b",
    "[^",
    "[^]",
  ],
];

test("a pattern matches the same names as a Redis pattern", async () => {
  for (const name of NAMES) await redis.set(`k${name}`, 1);
  for (const pattern of PATTERNS) {
    const expected = (await redis.keys(`k${pattern}`)).map((key) => key.slice(1)).sort();
    // The server's `?` matches a byte, ours a character.
    const isOfBytes = (name: string): boolean => name === "ordér:1" && /\?/.test(pattern);
    const found = NAMES.filter((name) => readGlob(pattern).matches(name));
    expect(found.filter((name) => !isOfBytes(name)).sort(), pattern).toEqual(
      expected.filter((name) => !isOfBytes(name)),
    );
  }
});

test("a question mark matches one character, and the longest literal part of a pattern is found", () => {
  expect(readGlob("ord?r:1").matches("ordér:1")).toBe(true);
  expect(readGlob("a*order\\*s[12]x").literal).toBe("order*s");
  expect(readGlob("*").literal).toBe("");
});

test("a pattern with many stars matches in reasonable time", () => {
  const glob = readGlob(`${"*a".repeat(200)}b`);
  const before = performance.now();
  expect(glob.matches("a".repeat(512))).toBe(false);
  // A matcher that backtracks to every star would never finish.
  expect(performance.now() - before).toBeLessThan(5_000);
});

const ODD = [
  "order:42",
  "}x",
  "%x",
  "a}b",
  "a}:fence",
  "x}:queue:{y",
  "}",
  "%",
  "{",
  "a}:condition:x",
  "\n}\u2028",
  "mapped:{x}",
];

test.each(ODD)("the keys of %j are parsed back to that lock", (name) => {
  const { base } = keysOf("hf", { kind: "mutex", name, key: undefined });
  for (const [suffix, part] of [
    ["", ""],
    [":fence", "fence"],
    [":queue", "queue"],
  ] as const) {
    const trace = traceOf(`${base}${suffix}`.slice("hf:".length));
    expect(trace).toEqual({ kind: "mutex", name, key: undefined, part, condition: undefined });
  }
  const condition = traceOf(`${base}:condition:${encodeURIComponent("a}:b/{é")}`.slice("hf:".length));
  expect(condition).toEqual({ kind: "mutex", name, key: undefined, part: "condition", condition: "a}:b/{é" });
});

test.each(["legacy", "app:{42}:lock", "{a}", "a:{b}c:queue", "x:fence"])(
  "a mapped key %j is parsed back to its lock",
  (key) => {
    const { base } = keysOf("hf", { kind: "mutex", name: key, key });
    expect(traceOf(`${base}:fence`.slice(3))).toMatchObject({ kind: "mutex", name: key, key, part: "fence" });
    expect(traceOf(`${base}:queue`.slice(3))).toMatchObject({ kind: "mutex", name: key, key, part: "queue" });
    expect(traceOf(`${base}:condition:c`.slice(3))).toMatchObject({ key, part: "condition", condition: "c" });
  },
);

test.each([
  "client:abc",
  "lineage",
  "lineage:{7}",
  "history:{a}",
  "redisson-semaphore:mapped:{a}:leases",
  "mutex:{}",
  "mutex",
])("%j is not the key of a lock", (rest) => {
  expect(traceOf(rest)).toBeUndefined();
});

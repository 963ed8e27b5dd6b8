import { createHash } from "node:crypto";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, describe, expect, it } from "vitest";

import { generateAll } from "../../scripts/build-lua.mjs";
import type { Script } from "../../src/core/store.js";

const roots: string[] = [];
afterEach(() => {
  for (const root of roots.splice(0)) rmSync(root, { recursive: true });
});

function generateIn(root: string, files: Readonly<Record<string, string>>): ReadonlyMap<string, string> {
  roots.push(root);
  for (const [file, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, file)), { recursive: true });
    writeFileSync(join(root, file), text);
  }
  return generateAll([{ root }]);
}

/** What is generated for one kind, or for none. */
function generateFrom(files: Readonly<Record<string, string>>): string {
  const root = mkdtempSync(join(tmpdir(), "build-lua-"));
  const generated = generateIn(root, files);
  return generated.get(join(root, "generated/mutex.ts")) ?? generated.get(join(root, "generated/scripts.ts")) ?? "";
}

/** The constants as a caller sees them. */
async function constants(files: Readonly<Record<string, string>>): Promise<Record<string, Script>> {
  const root = mkdtempSync(join(tmpdir(), "build-lua-"));
  const library = fileURLToPath(new URL("../../src/core/store.ts", import.meta.url));
  mkdirSync(join(root, "generated"));
  for (const [file, text] of generateIn(root, files))
    writeFileSync(file, text.replace('"../core/store.js"', JSON.stringify(library)));
  return await import(join(root, "generated/scripts.ts"));
}

interface Parts {
  readonly name?: string;
  readonly inputs?: string;
  readonly replies?: string;
  readonly body?: string;
}

const INPUTS = "  KEYS[1] lock   string, the owner\n  ARGV[1] owner  id of the claim\n";
const BODY = "local owner = ARGV[1]\nif redis.call('GET', KEYS[1]) ~= owner then return 0 end\nreturn 1\n";
const REPLIES = "  REPLY   1      released\n          0      lost: expired\n";

function lua({ name = "mutex/release", inputs = INPUTS, replies = REPLIES, body = BODY }: Parts = {}): string {
  return `--[[\n  ${name}: give it back.\n\n  Why it is one step.\n\n${inputs}${replies}]]\n${body}`;
}

const release = (parts?: Parts): Record<string, string> => ({ "mutex/release.lua": lua(parts) });
const withBody = (body: string): Record<string, string> => release({ body: BODY + body });
const withReplies = (replies: string): Record<string, string> => release({ replies });
const fragment = (name: string, body: string): string => `--[[\n  lua/${name}: a part.\n]]\n${body}`;

describe("a script as a typed constant", () => {
  it("lists the keys and arguments of its header in order", async () => {
    const { mutexRelease } = await constants(release());
    expect(mutexRelease).toMatchObject({ name: "mutex/release", keys: ["lock"], args: ["owner"] });
  });

  it("is named after its folder and verb in camel case", async () => {
    const text = lua({ name: "read-write-lock/force-release" });
    expect(Object.keys(await constants({ "read-write-lock/force-release.lua": text }))).toEqual([
      "readWriteLockForceRelease",
    ]);
  });

  it("has one reply form for each documented reply", async () => {
    const replies = [
      "  REPLY   token                      granted  the token is new",
      "                                              more prose, ignored",
      "          {0, restMs, nowUs}         waiting; the lease ends in restMs",
      "          {2}                        lost",
      "          {3, restMs, members...}    held     by these\n",
    ].join("\n");
    const { mutexRelease } = await constants(withReplies(replies));
    expect(mutexRelease?.replies).toEqual([
      { code: null, outcome: "granted", values: ["token"], rest: null },
      { code: 0, outcome: "waiting", values: ["restMs", "nowUs"], rest: null },
      { code: 2, outcome: "lost", values: [], rest: null },
      { code: 3, outcome: "held", values: ["restMs"], rest: "members" },
    ]);
  });

  it("has its name in its source, but no header, comment lines, empty lines or indentation", async () => {
    const body = `\n-- Why.\n${BODY}  -- Inner.\n\n  redis.call('DEL', KEYS[1]) -- kept\n\n\n`;
    const { mutexRelease } = await constants(release({ body }));
    expect(mutexRelease?.source).toBe(`-- holdfast mutex/release\n${BODY}redis.call('DEL', KEYS[1]) -- kept`);
  });

  it("contains the hash of its exact source, whatever characters it contains", async () => {
    const { mutexRelease } = await constants(withBody("local odd = '\\\\ ` ${x} \\n é */'\n"));
    expect(mutexRelease?.source).toContain("'\\\\ ` ${x} \\n é */'");
    const hash = createHash("sha1").update(mutexRelease?.source ?? "");
    expect(mutexRelease?.sha1).toBe(hash.digest("hex"));
  });

  it("does not depend on the line endings of the checkout", () => {
    const crlf = { "mutex/release.lua": lua().replaceAll("\n", "\r\n") };
    expect(generateFrom(crlf)).toBe(generateFrom(release()));
  });

  it("may take any number of keys and compute their index if its header says so", async () => {
    const inputs = `${INPUTS}  KEYS[...] others  string, more of them\n`;
    const { mutexRelease } = await constants(release({ inputs, body: `${BODY}redis.call('DEL', KEYS[#KEYS - 1])\n` }));
    expect(mutexRelease?.keys).toEqual(["lock", "others..."]);
  });

  it("is not generated if there are no scripts, but the file is still a module", () => {
    expect(generateFrom({ "core/lease.ts": "" })).toMatch(/^\/\/ Generated .*\nexport \{\};\n$/);
  });
});

describe("a fragment", () => {
  const including = release({ inputs: INPUTS, body: "-- include give\nreturn give(ARGV[1])\n" });

  it("replaces its include without its header, and its inputs count as the script's", async () => {
    const give = fragment("give", "local function give(owner)\n  return redis.call('DEL', KEYS[1])\nend\n");
    const { mutexRelease } = await constants({ ...including, "lua/give.lua": give });
    expect(mutexRelease?.source).toBe(
      "-- holdfast mutex/release\nlocal function give(owner)\nreturn redis.call('DEL', KEYS[1])\nend\nreturn give(ARGV[1])",
    );
  });

  it("adds its inputs to those that the header must list", () => {
    const give = fragment("give", "local x = redis.call('DEL', KEYS[1], KEYS[2])\n");
    expect(() => generateFrom({ ...including, "lua/give.lua": give })).toThrow(/KEYS\[2\] is in the body but not/);
  });
});

/** The rejected property, the files, and the expected error. */
const REFUSED: ReadonlyArray<readonly [string, Readonly<Record<string, string>>, RegExp]> = [
  ["a script without a header", { "mutex/release.lua": BODY }, /release\.lua: it must begin with a header/],
  ["a header that does not end", { "mutex/release.lua": "--[[\n  mutex/release: x\n" }, /must begin with a header/],
  ["a name that differs from the path", release({ name: "mutex/free" }), /must begin with " {2}mutex\/release: "/],
  ["a script outside the folder of a kind", { "release.lua": lua({ name: "release" }) }, /folder of its kind/],
  ["a header without REPLY", withReplies(""), /must say what the script replies/],
  ["a key of the body that the header lacks", withBody("redis.call('DEL', KEYS[2])"), /KEYS\[2\] is in the body/],
  ["an argument of the body that the header lacks", withBody("local x = ARGV[2]"), /ARGV\[2\] is in the body/],
  ["a key of the header that the body lacks", release({ inputs: `${INPUTS}  KEYS[2] queue  set\n` }), /in the header/],
  ["an argument of the header that the body lacks", release({ inputs: `${INPUTS}  ARGV[2] n  x\n` }), /in the header/],
  ["an input that only a comment mentions", release({ body: "local o = ARGV[1] -- KEYS[1]\n" }), /in the header but/],
  ["inputs out of order", release({ inputs: INPUTS.replace("KEYS[1]", "KEYS[2]") }), /KEYS\[2\] is out of order/],
  ["an input without a name", release({ inputs: "  KEYS[1]\n" }), /this is not an input: "KEYS\[1\]"/],
  [
    "two inputs with the same name",
    release({ inputs: INPUTS.replace("owner  id", "lock  id") }),
    /two inputs are called lock/,
  ],
  ["a key with a computed index", withBody("redis.call('DEL', KEYS[i])"), /literal KEYS\[n\] only/],
  ["a key after any number of keys", release({ inputs: `  KEYS[...] all  x\n${INPUTS}` }), /after all other/],
  ["any number of keys without a name", release({ inputs: `${INPUTS}  KEYS[...]\n` }), /this is not an input/],
  ["a script that uses the number of keys", withBody("local n = #KEYS"), /literal KEYS\[n\] only/],
  ["an argument with a computed index", withBody("local x = ARGV[i + 1]"), /literal ARGV\[n\] only/],
  ["a key under another name", withBody("local lock = KEYS[1]"), /under no other name/],
  ["a key as the channel", withBody("redis.call('PUBLISH', KEYS[1], 'x')"), /a channel goes under ARGV/],
  ["a key as the sharded channel", withBody('redis.pcall("spublish", KEYS[1], 1)'), /a channel goes under ARGV/],
  ["unpack", withBody("redis.call('DEL', unpack(all))"), /common subset of Lua: unpack/],
  ["table.unpack", withBody("redis.call('DEL', table.unpack(all))"), /common subset of Lua: unpack/],
  ["math.pow", withBody("local x = math.pow(2, 3)"), /common subset of Lua: math\.pow/],
  ["goto", withBody("goto again"), /common subset of Lua: goto/],
  ["integer division", withBody("local x = 3 // 2"), /common subset of Lua: \/\//],
  ["the bit operator &", withBody("local x = 3 & 2"), /a bit operator/],
  ["the bit operator |", withBody("local x = 3 | 2"), /a bit operator/],
  ["the bit operator ~", withBody("local x = ~2"), /a bit operator/],
  ["the bit operator <<", withBody("local x = 1 << 2"), /a bit operator/],
  ["the bit operator >>", withBody("local x = 4 >> 2"), /a bit operator/],
  ["the bit library", withBody("local x = bit.band(1, 2)"), /the bit library/],
  ["functions that only Lua 5.1 has", withBody("loadstring('x')"), /a word of 5\.1 alone/],
  ["functions that only Lua 5.4 has", withBody("local x = math.type(1)"), /a word of 5\.4 alone/],
  ["a long string", withBody("local x = [[\n-- text\n]]"), /long brackets/],
  ["a long comment", withBody("--[[ prose\n]] return 2"), /long brackets/],
  ["two replies that are a bare number", withReplies("  REPLY   token  a\n          rest   b\n"), /bare number/],
  [
    "a bare code next to a bare number",
    withReplies("  REPLY   token  a\n          0      b\n"),
    /write it as \{code\}/,
  ],
  ["two replies with equal codes", withReplies("  REPLY   1  a\n          {1, x}  b\n"), /two answers have the code 1/],
  ["a reply without an outcome", withReplies("  REPLY   1\n"), /this is not an answer: "1"/],
  ["a list without a code", withReplies("  REPLY   {token, x}  granted\n"), /this is not an answer/],
  ["a rest that is not last", withReplies("  REPLY   {1, all..., x}  held\n"), /this is not an answer/],
  ["a value named twice", withReplies("  REPLY   {1, x, x}  held\n"), /says x twice/],
  ["prose between the replies", withReplies("  REPLY   1  a\n  And so on.\n"), /only answers may follow REPLY/],
  ["an include of an unknown fragment", withBody("-- include give"), /no fragment lua\/give\.lua/],
  ["a fragment without a header", { ...withBody("-- include g"), "lua/g.lua": "local x = 1" }, /lua\/g\.lua: it must/],
  [
    "a fragment that no script includes",
    { ...release(), "lua/g.lua": fragment("g", "local x = 1\n") },
    /no script includes/,
  ],
  [
    "an include inside a fragment",
    { ...withBody("-- include g"), "lua/g.lua": fragment("g", "-- include h\n"), "lua/h.lua": fragment("h", "\n") },
    /lua\/g\.lua: a fragment cannot include/,
  ],
];

describe("the build rejects", () => {
  it.each(REFUSED)("%s", (_, files, reason) => {
    expect(() => generateFrom(files)).toThrow(reason);
  });
});

it("forbidden syntax may appear in strings and comments", () => {
  expect(() => generateFrom(withBody("local x = 'a // b & unpack' -- goto KEYS[i] // ~\n"))).not.toThrow();
});

import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  checkClientName,
  checkKey,
  checkLabel,
  checkName,
  checkPrefix,
  lockKeys,
  mappedKeys,
  show,
} from "../../src/core/keys.js";
import { clusterSlot, hashTag } from "./cluster-slot.js";

/** Names that mix characters with a meaning in keys with arbitrary text. */
const name = fc
  .oneof(
    fc.string({ unit: fc.constantFrom("{", "}", "%", ":", "a", "fence", "queue", ":fence", ":queue"), minLength: 1 }),
    fc.string({ unit: "grapheme", minLength: 1, maxLength: 60 }),
    fc.string({ unit: "binary", minLength: 1, maxLength: 60 }),
  )
  .filter((text) => Buffer.byteLength(text) <= 512);

const SUFFIXES = ["", ":fence", ":queue"];

function keysOf(lockName: string): string[] {
  const { base } = lockKeys("hf", "mutex", lockName);
  return SUFFIXES.map((suffix) => base + suffix);
}

describe("the test's own slot function", () => {
  test.each([
    ["123456789", 0x31c3],
    ["foo{}{bar}", clusterSlot("foo{}{bar}")],
    ["{user1000}.following", clusterSlot("user1000")],
    ["foo{{bar}}zap", clusterSlot("{bar")],
    ["foo{bar}{zap}", clusterSlot("bar")],
  ])("maps %s to slot %i", (key, slot) => {
    expect(clusterSlot(key)).toBe(slot % 16_384);
  });
});

describe("keys of a lock", () => {
  test("are readable for an ordinary name", () => {
    expect(lockKeys("hf", "mutex", "order:42")).toEqual({
      tag: "order:42",
      lock: "hf:mutex:{order:42}",
      base: "hf:mutex:{order:42}",
    });
  });

  test("share the hash slot of the tag for any name", () => {
    fc.assert(
      fc.property(name, (any) => {
        const { tag } = lockKeys("hf", "mutex", any);
        expect(tag).not.toBe("");
        for (const key of keysOf(any)) {
          expect(hashTag(key)).toBe(tag);
          expect(clusterSlot(key)).toBe(clusterSlot(`in:{${tag}}:x`));
        }
      }),
      { numRuns: 2_000 },
    );
  });

  test("never collide with the keys of another name", () => {
    fc.assert(
      fc.property(name, name, (one, other) => {
        fc.pre(one !== other);
        expect(new Set([...keysOf(one), ...keysOf(other)]).size).toBe(6);
      }),
      { numRuns: 4_000 },
    );
  });

  test("differ for names that look like parts of keys", () => {
    const names = [
      "a",
      "{a}",
      "a}",
      "a}:fence",
      "a:fence",
      "}",
      "%}",
      "%",
      "%%",
      "%%}",
      "}a",
      "%}a",
      "{}",
      "{",
      "a}b{c",
    ];
    const all = names.flatMap(keysOf);
    expect(new Set(all).size).toBe(all.length);
  });
});

describe("keys of a mapped lock", () => {
  const key = fc
    .oneof(fc.string({ unit: fc.constantFrom("{", "}", "a", "b", ":", "mapped"), minLength: 1, maxLength: 12 }), name)
    .filter((text) => {
      try {
        return checkKey(text) === text;
      } catch {
        return false;
      }
    });

  test("are in the hash slot of the given key", () => {
    fc.assert(
      fc.property(key, (any) => {
        const { lock, base, tag } = mappedKeys("hf", "mutex", any);
        expect(lock).toBe(any);
        for (const other of [`${base}:fence`, `${base}:queue`, `in:{${tag}}:x`]) {
          expect(clusterSlot(other)).toBe(clusterSlot(any));
        }
      }),
      { numRuns: 2_000 },
    );
  });

  test("never collide with those of another key or of a named lock", () => {
    fc.assert(
      fc.property(key, key, name, (one, other, any) => {
        fc.pre(one !== other);
        const bases = [one, other].map((mapped) => mappedKeys("hf", "mutex", mapped).base);
        expect(new Set([...bases, lockKeys("hf", "mutex", any).base]).size).toBe(3);
      }),
      { numRuns: 4_000 },
    );
    expect(mappedKeys("hf", "mutex", "abc").base).not.toBe(mappedKeys("hf", "mutex", "{abc}").base);
  });

  test.each(["}", "a}", "{}a", "a{}b{c}", "}{a}"])("cannot be made from the key %s", (stray) => {
    expect(() => checkKey(stray)).toThrow(RangeError);
  });
});

describe("a lock name", () => {
  test("may be any text of 1 to 512 bytes", () => {
    fc.assert(
      fc.property(name, (any) => checkName(any) === any),
      { numRuns: 1_000 },
    );
  });

  test.each([
    ["x", 512],
    ["é", 256],
    ["鍵", 170],
    ["🔐", 128],
  ])("is limited to 512 bytes: %s × %i fits, one more does not", (letter, count) => {
    expect(checkName(letter.repeat(count))).toHaveLength(letter.length * count);
    expect(() => checkName(letter.repeat(count + 1))).toThrow("name must be 1 to 512 bytes of UTF-8; got ");
  });

  test.each(["", "\ud800", "a\udc00b", "\udc00\ud800", "🔐\ud83d"])("cannot be %j", (wrong) => {
    expect(() => checkName(wrong)).toThrow(RangeError);
    expect(() => checkName(wrong)).toThrow(/^name must /);
  });

  test.each([undefined, null, 7, true, Symbol("s"), {}, [], () => {}, 7n])("must be a string, not %s", (wrong) => {
    expect(() => checkName(wrong)).toThrow(TypeError);
    expect(() => checkName(wrong)).toThrow(/^name must be a string of 1 to 512 bytes; got /);
  });

  test("of a megabyte is rejected without measuring or printing it", () => {
    expect(() => checkName("x".repeat(1_000_000))).toThrow("got 1000000 or more");
  });
});

describe("labels, client names and prefixes", () => {
  test.each([
    ["label", checkLabel],
    ["clientName", checkClientName],
  ] as const)("a %s may be empty or any text of up to 256 bytes", (option, check) => {
    expect(check("")).toBe("");
    expect(check("\n/%🔐")).toBe("\n/%🔐");
    expect(check("x".repeat(256))).toHaveLength(256);
    expect(() => check("é".repeat(129))).toThrow(`${option} must be 0 to 256 bytes`);
    expect(() => check("\ud800")).toThrow(RangeError);
    expect(() => check(1)).toThrow(TypeError);
  });

  test.each(["", "a b", "{a}", "a}", "é", "a\n", "x".repeat(65), "\u007f"])("prefix %j is rejected", (wrong) => {
    expect(() => checkPrefix(wrong)).toThrow(RangeError);
  });

  test.each(["hf", "a:b/c|d~e", "x".repeat(64)])("prefix %j is accepted", (right) => {
    expect(checkPrefix(right)).toBe(right);
  });
});

test("a value printed in an error is short, fits on one line and never throws", () => {
  const hostile = [
    "a\nb\u2028c\u0085d\u001b[31m",
    Symbol("a\nb"),
    () => "several\nlines",
    { toString: () => "a\nb", constructor: { name: "a\nb" } },
    Object.create(null),
    new Proxy(
      {},
      {
        get: () => {
          throw new Error("no");
        },
      },
    ),
    new Date(0),
    [["a\nb"]],
    "x".repeat(10_000),
    10n ** 50n,
  ];
  for (const value of hostile) {
    expect(show(value)).toMatch(/^[^\p{Cc}\u2028\u2029]{1,120}$/u);
  }
});

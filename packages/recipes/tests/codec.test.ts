/** Encoding of values as text, and fingerprints that do not depend on how the input is written. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { jsonCodec } from "../src/codec.js";
import { decodeFailure, encodeFailure } from "../src/failure.js";
import { fingerprintOf } from "../src/once/fingerprint.js";

const leaf = fc.oneof(
  fc.string(),
  fc.integer(),
  fc.double(),
  fc.boolean(),
  fc.constant(null),
  fc.constant(undefined),
  fc.bigInt(),
  fc.date(),
  fc.uint8Array().map((bytes) => Buffer.from(bytes)),
);
const value = fc.letrec((tie) => ({
  any: fc.oneof({ maxDepth: 4 }, leaf, fc.array(tie("any")), tie("record"), tie("map"), tie("set")),
  record: fc.dictionary(
    fc.oneof(fc.string(), fc.constantFrom("$date", "$$", "$", "__proto__", "$undefined")),
    tie("any"),
  ),
  map: fc.array(fc.tuple(leaf, tie("any"))).map((entries) => new Map(entries)),
  set: fc.array(leaf).map((entries) => new Set(entries)),
})).any;

describe("a stored value", () => {
  test("decodes to the original", () => {
    fc.assert(
      fc.property(value, (original) => {
        expect(jsonCodec.decode(jsonCodec.encode(original))).toEqual(original);
      }),
    );
  });

  test("keeps undefined, -0, NaN, infinity and bigints", () => {
    const original = { none: undefined, minus: -0, not: Number.NaN, all: Infinity, big: 2n ** 70n, list: [undefined] };
    const back = jsonCodec.decode(jsonCodec.encode(original)) as typeof original;
    expect(back).toStrictEqual(original);
    expect(Object.is(back.minus, -0)).toBe(true);
  });

  test("in plain JSON decodes as JSON.parse does", () => {
    fc.assert(
      fc.property(fc.json(), (text) => {
        fc.pre(!text.includes("$"));
        expect(jsonCodec.decode(text)).toEqual(JSON.parse(text));
      }),
    );
  });

  test.each([
    ["a function", () => {}],
    ["a symbol", Symbol("mark")],
    [
      "a cycle",
      (() => {
        const self: { self?: object } = {};
        self.self = self;
        return self;
      })(),
    ],
  ])("is refused if it contains %s", (_, wrong) => {
    expect(() => jsonCodec.encode({ wrong })).toThrow(TypeError);
  });
});

describe("a fingerprint", () => {
  test("ignores the order of properties and undefined properties", () => {
    const one = { amount: 5, to: { name: "a", iban: "b", note: undefined }, tags: [1, 2] };
    const other = { tags: [1, 2], to: { iban: "b", name: "a" }, amount: 5 };
    expect(fingerprintOf(one)).toBe(fingerprintOf(other));
  });

  test("differs for different values", () => {
    const different = [
      undefined,
      null,
      "",
      "1",
      1,
      1n,
      [],
      {},
      [1, 2],
      [2, 1],
      { a: 1 },
      { b: 1 },
      new Date(1),
      new Date(2),
    ];
    expect(new Set(different.map(fingerprintOf)).size).toBe(different.length);
  });

  test("refuses objects with hidden content and accepts maps and plain objects", () => {
    for (const hidden of [
      new FormData(),
      new URLSearchParams("a=1"),
      new Blob(["x"]),
      { files: [new File(["x"], "a")] },
    ])
      expect(() => fingerprintOf(hidden)).toThrow(
        /^fingerprint must contain only data that can be compared; the content of an instance of \w+ cannot be read$/,
      );
    expect(fingerprintOf(new Map([["a", 1]]))).not.toBe(fingerprintOf(new Map([["a", 2]])));
    expect(fingerprintOf(Object.create(null))).toBe(fingerprintOf({}));
  });

  test("reads deep data about as often as wide data, so a small deep body cannot block the process", () => {
    const depth = 1_200;
    const deep: unknown = JSON.parse("[".repeat(depth) + "]".repeat(depth));
    const wide: unknown = JSON.parse(`[${"[],".repeat(depth - 2)}[]]`);
    // Counts property reads on all arrays, because times depend on the machine.
    const looks = (content: unknown): number => {
      let count = 0;
      const watched = (value: unknown): unknown =>
        Array.isArray(value)
          ? new Proxy(value, {
              get(target, key, receiver) {
                count += 1;
                return watched(Reflect.get(target, key, receiver));
              },
            })
          : value;
      fingerprintOf(watched(content));
      return count;
    };
    expect(looks(deep)).toBeGreaterThan(depth);
    expect(looks(deep)).toBeLessThan(6 * looks(wide));
  });
});

test("any thrown value can be stored as a failure", () => {
  const odd = Object.assign(new Error("x"), { name: 404, message: { code: 1 } });
  const mute = { toString: () => 5 as unknown as string, [Symbol.toPrimitive]: () => ({}) };
  for (const thrown of [odd, Object.create(null), mute, undefined, Symbol("s")]) {
    const kept: { name: unknown; message: unknown } = decodeFailure(encodeFailure(thrown, 1_000));
    expect([typeof kept.name, typeof kept.message]).toEqual(["string", "string"]);
  }
});

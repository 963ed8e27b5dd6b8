import fc from "fast-check";
import { expect, test } from "vitest";
import { Registry } from "../../src/core/inbox.js";

test("a registry behaves like a Map, even for numbers that share a slot", () => {
  const number = fc.oneof(fc.integer({ min: 1, max: 8 }), fc.constantFrom(4_097, 8_193, 4_098, 4_096, 8_192));
  const step = fc.oneof(
    fc.record({ verb: fc.constant("set" as const), number, value: fc.integer() }),
    fc.record({ verb: fc.constant("delete" as const), number, value: fc.constant(0) }),
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const registry = new Registry<{ value: number }>();
      const map = new Map<number, { value: number }>();
      for (const { verb, number, value } of steps) {
        if (verb === "set") {
          const entry = { value };
          registry.set(number, entry);
          map.set(number, entry);
        } else {
          registry.delete(number);
          map.delete(number);
        }
        expect(registry.size).toBe(map.size);
        expect(registry.get(number)).toBe(map.get(number));
      }
      const byValue = (a: { value: number }, b: { value: number }): number => a.value - b.value;
      const values: { value: number }[] = [];
      registry.forEach((entry) => {
        values.push(entry);
      });
      expect(values.toSorted(byValue)).toEqual([...map.values()].toSorted(byValue));
    }),
  );
});

test("an unknown number has no entry", () => {
  expect(new Registry<object>().get(0)).toBeUndefined();
  expect(new Registry<object>().get(4_096)).toBeUndefined();
});

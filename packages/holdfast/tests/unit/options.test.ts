import { describe, expect, test } from "vitest";
import { DEFAULTS, NONE, type ResolvedOptions, resolve } from "../../src/core/options.js";
import { createHoldfast } from "../../src/holdfast.js";
import { ScriptedLock, ScriptedStore } from "./scripted-lock.js";

const BASE: ResolvedOptions = { ...DEFAULTS, signal: undefined, amount: 1 };

/** Values of each option: valid values, values of a wrong type, values out of range. */
const TABLE: Record<string, { right: unknown[]; type: unknown[]; range: unknown[]; says: string }> = {
  leaseMs: {
    right: [100, 30_000, 31_536_000_000],
    type: ["1000", null, true, 1_000n, {}, new Date()],
    range: [99, 0, -1, 100.5, Number.NaN, Infinity, 31_536_000_001],
    says: "a whole number from 100 to 31536000000",
  },
  maxHoldMs: {
    right: [100, Infinity, 31_536_000_000],
    type: ["1000", null, false],
    range: [99, 0, -Infinity, 100.5, Number.NaN],
    says: "a whole number from 100 to 31536000000 or Infinity",
  },
  waitMs: {
    right: [0, 0.5, 10_000, Infinity, 2 ** 40],
    type: ["0", null, true, 5n],
    range: [-1, -0.001, Number.NaN, -Infinity],
    says: "0 or more",
  },
  renew: { right: [true, false], type: [0, 1, "true", null], range: [], says: "true or false" },
  label: {
    right: ["", "any\ntext", "x".repeat(256)],
    type: [5, null, {}],
    range: ["x".repeat(257), "\ud800"],
    says: "256",
  },
  fairness: { right: ["cohort", "strict"], type: ["fifo", "", null, true], range: [], says: '"cohort" or "strict"' },
  throughPause: { right: [true, false], type: ["yes", 1, null], range: [], says: "true or false" },
  signal: {
    right: [new AbortController().signal],
    type: [{}, null, new AbortController(), "x"],
    range: [],
    says: "AbortSignal",
  },
};

describe.each(Object.entries(TABLE))("option %s", (option, { right, type, range, says }) => {
  test("accepts every value of its range unchanged", () => {
    for (const value of right) expect(resolve({ [option]: value }, BASE)).toEqual({ ...BASE, [option]: value });
  });

  test("rejects a wrong type with its name, its range and the value", () => {
    for (const value of type) {
      expect(() => resolve({ [option]: value }, BASE)).toThrow(TypeError);
      expect(() => resolve({ [option]: value }, BASE)).toThrow(new RegExp(`^${option} must .*; got .+$`, "s"));
    }
  });

  test("rejects a value out of range and never corrects it", () => {
    for (const value of range) {
      expect(() => resolve({ [option]: value }, BASE)).toThrow(RangeError);
      expect(() => resolve({ [option]: value }, BASE)).toThrow(new RegExp(`^${option} must .*; got .+$`, "s"));
    }
  });

  test("names its range in the error", () => {
    for (const value of [...type, ...range].slice(0, 1)) {
      expect(() => resolve({ [option]: value }, BASE)).toThrow(says);
    }
  });

  test("has its default if it is undefined", () => {
    expect(resolve({ [option]: undefined }, BASE)).toEqual(BASE);
  });
});

describe("options", () => {
  test("are all covered by the table above", () => {
    expect(Object.keys(TABLE).toSorted()).toEqual([...Object.keys(DEFAULTS), "signal"].toSorted());
  });

  test("that do not exist are rejected by name", () => {
    for (const unknown of ["ttl", "timeout", "amount", "__proto__x", "toString"]) {
      expect(() => resolve({ [unknown]: 1 } as never, BASE)).toThrow(`there is no option "${unknown}"`);
    }
    expect(() => resolve({ "a\nb": 1 } as never, BASE)).toThrow(String.raw`"a\nb"`);
  });

  test.each([null, 5, "x", true, () => {}])("must be an object: %s", (wrong) => {
    expect(() => resolve(wrong as never, BASE)).toThrow(TypeError);
  });

  test("that were omitted are not checked", () => {
    expect(resolve(NONE, BASE)).toBe(BASE);
  });

  test("have frozen defaults", () => {
    expect(Object.isFrozen(DEFAULTS)).toBe(true);
    expect(DEFAULTS).toEqual({
      leaseMs: 30_000,
      renew: true,
      maxHoldMs: Infinity,
      label: "",
      waitMs: 10_000,
      fairness: "cohort",
      throughPause: false,
    });
  });

  test("that are invalid reject the call and send nothing", async () => {
    const world = new ScriptedLock();
    for (const wrong of [{ leaseMs: 1 }, { waitMs: -1 }, { what: 1 }] as never[]) {
      await expect(world.lock.acquire(wrong)).rejects.toThrow();
      await expect(world.lock.tryAcquire(wrong)).rejects.toThrow();
      await expect(world.lock.run(() => 1, wrong)).rejects.toThrow();
    }
    await expect(world.lock.run("work" as never)).rejects.toThrow(TypeError);
    expect(world.sent).toEqual([]);
  });
});

describe("createHoldfast", () => {
  const store = new ScriptedStore();

  test.each<[object, RegExp]>([
    [{}, /exactly one of redis, store and redlock; got none/],
    [{ store, redis: {} }, /exactly one of redis, store and redlock; got redis and store/],
    [{ store, prefix: "a b" }, /^prefix /],
    [{ store, clientName: 5 }, /^clientName /],
    [{ store, commandTimeoutMs: 9 }, /^commandTimeoutMs must be a whole number from 10 to 60000; got 9/],
    [{ store, commandTimeoutMs: 60_001 }, /^commandTimeoutMs /],
    [{ store, commandTimeoutMs: "50" }, /^commandTimeoutMs /],
    [{ store, subscriber: {} }, /^subscriber /],
    [{ store, leaseMs: 5 }, /^leaseMs /],
    [{ store, waitMs: "5" }, /^waitMs /],
    [{ store, signal: new AbortController().signal }, /there is no option "signal"/],
    [{ store, ttl: 5 }, /there is no option "ttl"/],
    [{ redis: {} }, /redis/],
  ])("rejects %j", (options, message) => {
    expect(() => createHoldfast(options as never)).toThrow(message);
  });

  test("requires an object", () => {
    for (const wrong of [undefined, null, 5, "redis://"])
      expect(() => createHoldfast(wrong as never)).toThrow(TypeError);
  });

  test("creates locks that reject invalid names and options", () => {
    const holdfast = createHoldfast({ store });
    expect(() => holdfast.mutex("")).toThrow(RangeError);
    expect(() => holdfast.mutex(5 as never)).toThrow(TypeError);
    expect(() => holdfast.mutex("a", { key: "" })).toThrow(/^key /);
    expect(() => holdfast.mutex("a", { keys: "b" } as never)).toThrow('there is no option "keys"');
    expect(holdfast.mutex("a", { key: undefined } as never).name).toBe("a");
  });

  test("creates a Holdfast whose adopt rejects malformed exported leases", async () => {
    const holdfast = createHoldfast({ store });
    const right = {
      version: 1,
      kind: "mutex",
      name: "a",
      owner: "c/1/30000/1",
      token: 5,
      leaseMs: 30_000,
      renew: true,
    };
    const wrongs: [object, RegExp][] = [
      [{ version: 2 }, /version 1/],
      [{ kind: "toString" }, /^kind /],
      [{ kind: undefined }, /^kind /],
      [{ name: "" }, /^name /],
      [{ key: 5 }, /^key /],
      [{ owner: "" }, /^owner /],
      [{ token: 0 }, /^token /],
      [{ token: 1.5 }, /^token /],
      [{ leaseMs: 5 }, /^leaseMs /],
      [{ renew: 1 }, /^renew /],
      [{ maxHoldMs: 0 }, /^maxHoldMs /],
    ];
    for (const [wrong, message] of wrongs) {
      await expect(holdfast.adopt({ ...right, ...wrong } as never)).rejects.toThrow(message);
    }
    for (const wrong of [null, undefined, "x", 5])
      await expect(holdfast.adopt(wrong as never)).rejects.toThrow(TypeError);
  });
});

describe("forceRelease", () => {
  test("requires an owner or a token, and sends nothing without one", async () => {
    const world = new ScriptedLock();
    for (const wrong of [
      undefined,
      null,
      {},
      { owner: "" },
      { owner: 5 },
      { token: 0 },
      { token: "5" },
      { token: 1.5 },
    ]) {
      await expect(world.lock.forceRelease(wrong as never)).rejects.toThrow(/^(owner|token|forceRelease) /);
    }
    expect(world.sent).toEqual([]);
  });
});

import fc from "fast-check";
import { describe, expect, it } from "vitest";

import { check, checkPartitions, type Model, type Timed } from "../src/checker/index.js";
import { naiveCheck, shapes } from "./naive.js";

interface Step {
  readonly client: number;
  readonly verb: "acquire" | "release";
}

/** A lock that one of two clients holds. */
const LOCK: Model<number | null, Step> = {
  name: "lock",
  initial: null,
  step: (holder, { client, verb }) => {
    if (verb === "acquire") return holder === null ? [client] : [];
    return holder === client ? [null] : [];
  },
  key: String,
};

/** A cell that may drop a write. */
const LOSSY: Model<number, { readonly write?: number; readonly read?: number }> = {
  name: "lossy cell",
  initial: 0,
  step: (value, { write, read }) => {
    if (write !== undefined) return [value, write];
    return value === read ? [value] : [];
  },
  key: String,
};

/** A cell to which each client writes its own name. Unlike a lock's, its state depends on the order of operations. */
const CELL: Model<number, { readonly client: number; readonly verb: "write" | "read own" | "read other" }> = {
  name: "cell",
  initial: 0,
  step: (value, { client, verb }) => {
    if (verb === "write") return [client];
    return (value === client) === (verb === "read own") ? [value] : [];
  },
  key: String,
};

function words<Verb>(verbs: readonly Verb[], length: number): Verb[][] {
  if (length === 0) return [[]];
  return words(verbs, length - 1).flatMap((word) => verbs.map((verb) => [...word, verb]));
}

/** All histories of two clients with these numbers of operations; `unknown`: clients whose last outcome is unknown. */
function* histories<Verb>(
  verbs: readonly Verb[],
  [first, second]: readonly [number, number],
  unknown: readonly number[],
): Generator<Timed<{ readonly client: number; readonly verb: Verb }>[]> {
  for (const shape of shapes(first, second))
    for (const word of words(verbs, first + second))
      yield shape.map(({ client, callMs, returnMs }, index) => {
        const isLast = index === (client === 0 ? first : first + second) - 1;
        const value = { client, verb: word[index] as Verb };
        return { callMs, returnMs: isLast && unknown.includes(client) ? Number.POSITIVE_INFINITY : returnMs, value };
      });
}

/** How many times the checker, possibly with a broken model, contradicts the definition. */
function disagreements<State, Verb>(
  model: Model<State, { readonly client: number; readonly verb: Verb }>,
  verbs: readonly Verb[],
  sizes: readonly [number, number],
  unknown: readonly number[],
  checked = model,
): number {
  let count = 0;
  for (const history of histories(verbs, sizes, unknown))
    if ((check(checked, history).verdict === "ok") !== naiveCheck(model, history)) count += 1;
  return count;
}

const LOCK_VERBS = ["acquire", "release"] as const;
const CELL_VERBS = ["write", "read own", "read other"] as const;
const SIZES = [1, 2, 3, 4, 5, 6].flatMap((total) =>
  Array.from({ length: Math.floor(total / 2) + 1 }, (_, second) => [total - second, second] as const),
);

describe("on every history of two clients the checker agrees with a search of all orders", () => {
  it.each(SIZES)("%i and %i operations", (...sizes) => {
    expect(disagreements(LOCK, LOCK_VERBS, sizes, [])).toBe(0);
    expect(disagreements(CELL, CELL_VERBS, sizes, [])).toBe(0);
  });

  it.each(SIZES)("%i and %i operations, with or without unknown outcomes of the last ones", (...sizes) => {
    for (const unknown of [[0], [1], [0, 1]]) expect(disagreements(LOCK, LOCK_VERBS, sizes, unknown)).toBe(0);
    // With three verbs and two open ends, six operations would be slow and show nothing that five do not.
    if (sizes[0] + sizes[1] <= 5) expect(disagreements(CELL, CELL_VERBS, sizes, [0, 1])).toBe(0);
  });

  it("a broken cache that confuses all states is found", () => {
    const broken = { ...CELL, key: () => "" };
    expect(disagreements(CELL, CELL_VERBS, [2, 2], [], broken)).toBeGreaterThan(0);
  });
});

it("on random histories of any width, with a nondeterministic model, the checker agrees with a search of all orders", () => {
  const operation = fc.record({
    callMs: fc.nat(8),
    lengthMs: fc.oneof({ weight: 5, arbitrary: fc.nat(4) }, { weight: 1, arbitrary: fc.constant(Infinity) }),
    value: fc.oneof(fc.record({ write: fc.integer({ min: 1, max: 2 }) }), fc.record({ read: fc.nat(2) })),
  });
  const seen = { ok: 0, violation: 0, unknown: 0 };
  fc.assert(
    fc.property(fc.array(operation, { maxLength: 7 }), (drawn) => {
      const history = drawn.map(({ callMs, lengthMs, value }) => ({ callMs, returnMs: callMs + lengthMs, value }));
      const { verdict } = check(LOSSY, history);
      seen[verdict] += 1;
      expect(verdict).toBe(naiveCheck(LOSSY, history) ? "ok" : "violation");
    }),
    { numRuns: 2000, seed: 4 },
  );
  expect(Math.min(seen.ok, seen.violation)).toBeGreaterThan(200);
});

function step(client: number, verb: Step["verb"], callMs: number, returnMs: number): Timed<Step> {
  return { callMs, returnMs, value: { client, verb } };
}

describe("a verdict", () => {
  it("of a legal history comes with its whole order", () => {
    const history = [step(0, "acquire", 0, 5), step(1, "acquire", 1, 9), step(0, "release", 6, 8)];
    const { verdict, partials, stuckAt } = check(LOCK, history);
    expect({ verdict, stuckAt }).toEqual({ verdict: "ok", stuckAt: undefined });
    expect(partials[0]?.map(({ value }) => `${value.client} ${value.verb}`)).toEqual([
      "0 acquire",
      "0 release",
      "1 acquire",
    ]);
  });

  it("of a violation reports how far it got and what it could not pass", () => {
    const history = [step(0, "acquire", 0, 1), step(0, "release", 2, 3), step(1, "release", 4, 5)];
    const { verdict, partials, stuckAt } = check(LOCK, history, { keepsPartials: true });
    expect(verdict).toBe("violation");
    expect(partials[0]).toEqual(history.slice(0, 2));
    expect(stuckAt).toBe(history[2]);
  });

  it("of a violation has, if asked, the longest order of each operation", () => {
    const rivals = [step(0, "acquire", 0, 5), step(1, "acquire", 0, 5)];
    const { partials } = check(LOCK, rivals, { keepsPartials: true });
    expect(partials).toHaveLength(2);
    expect(new Set(partials.flat())).toEqual(new Set(rivals));
  });

  it("is unknown when the time is up", () => {
    expect(check(LOCK, [step(0, "acquire", 0, 1)], { timeoutMs: 0 }).verdict).toBe("unknown");
  });

  it("of an empty history is ok", () => {
    expect(check(LOCK, [])).toMatchObject({ verdict: "ok", partials: [[]] });
  });
});

it("operations that touch may have happened in either order", () => {
  const first = step(0, "acquire", 0, 1);
  expect(check(LOCK, [first, step(1, "acquire", 3, 4), step(0, "release", 4, 5)]).verdict).toBe("ok");
  expect(check(LOCK, [first, step(1, "acquire", 3, 4), step(0, "release", 5, 6)]).verdict).toBe("violation");
});

it("an operation with an unknown outcome takes effect only if that makes the history legal", () => {
  const lost = step(0, "release", 2, Number.POSITIVE_INFINITY);
  const before = [step(0, "acquire", 0, 1), lost];
  expect(check(LOCK, [...before, step(1, "acquire", 5, 6)]).verdict).toBe("ok");
  expect(check(LOCK, [...before, step(0, "release", 5, 6)]).verdict).toBe("ok");
  expect(check(LOCK, [...before, step(1, "acquire", 5, 6), step(0, "release", 7, 8)]).verdict).toBe("violation");
});

it("each name is judged separately", () => {
  const good = [step(0, "acquire", 0, 1), step(0, "release", 2, 3)];
  const bad = [step(0, "acquire", 0, 1), step(1, "acquire", 2, 3)];
  const results = checkPartitions(
    LOCK,
    new Map([
      ["good", good],
      ["bad", bad],
    ]),
  );
  expect(results.map(({ partition, verdict }) => [partition, verdict])).toEqual([
    ["good", "ok"],
    ["bad", "violation"],
  ]);
});

it("the cache avoids searching every order of a wide history", () => {
  // Each of twelve drops or writes the same value in any order: 12! orders, and 2^12 sets with at most two states.
  const writes = Array.from({ length: 12 }, () => ({ callMs: 0, returnMs: 10, value: { write: 1 } }));
  const { verdict, visited } = check(LOSSY, [...writes, { callMs: 20, returnMs: 21, value: { read: 2 } }]);
  expect(verdict).toBe("violation");
  expect(visited).toBeLessThanOrEqual(2 ** 12);
});

it("a long history with little concurrency is decided in one pass", () => {
  const history = Array.from({ length: 20_000 }, (_, index) =>
    step(0, index % 2 === 0 ? "acquire" : "release", index * 10, index * 10 + 5),
  );
  expect(check(LOCK, history)).toMatchObject({ verdict: "ok", visited: 20_000 });
});

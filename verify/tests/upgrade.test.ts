/** The judge of mixed versions, on handwritten logs; and on a real server, a build with a mistake is caught. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Builds, unpackBuilds } from "../src/upgrade/builds.js";
import { compare, judge } from "../src/upgrade/judge.js";
import type { Entry, Exit, LogEntry } from "../src/upgrade/log.js";
import { optionsOf } from "../src/upgrade/options.js";
import { PHASES, play } from "../src/upgrade/phase.js";

let lastId = 0;

function grant(grantedMs: number, more: Partial<Entry> = {}): Entry {
  lastId += 1;
  const facts = { kind: "mutex", name: "long", worker: 1, build: "old", amount: 1, mode: "write" } as const;
  const times = { callMs: grantedMs - 1, grantedMs, untilMs: grantedMs + 30_000 };
  return { type: "in", id: `1/${lastId}`, ...facts, token: grantedMs, ...times, ...more };
}

function exit({ id }: Entry, atMs: number, lost: string | null = null): Exit {
  return { type: "out", id, atMs, lost };
}

function violations(...log: LogEntry[]): readonly string[] {
  return judge(log).violations;
}

describe("the judge", () => {
  test("finds nothing if each holder leaves before the next one enters", () => {
    const [first, second] = [grant(10), grant(20, { build: "new" })];
    expect(violations(first, exit(first, 19), second, exit(second, 30))).toEqual([]);
  });

  test("finds two holders, by the log and by their clocks", () => {
    const [first, second] = [grant(10), grant(20, { build: "new", worker: 2 })];
    const found = violations(first, second, exit(first, 25), exit(second, 30));
    expect(found).toHaveLength(2);
    expect(found[0]).toContain('"long" has two holders by the server\'s log: worker 1 (old');
  });

  test("finds a holder whose lease was renewed beyond the next grant", () => {
    const [first, second] = [grant(10, { untilMs: 15 }), grant(20)];
    expect(violations(first, second), "it was over").toEqual([]);
    const { id } = first;
    expect(violations(first, { type: "still", id, untilMs: 40 }, second)).not.toEqual([]);
  });

  test("allows shared readers and permits, up to their number", () => {
    const reader = (ms: number): Entry => grant(ms, { kind: "read-write-lock", mode: "read" });
    expect(violations(reader(10), reader(20))).toEqual([]);
    expect(violations(reader(10), grant(20, { kind: "read-write-lock" }))).not.toEqual([]);
    const holder = (ms: number, amount: number): Entry => grant(ms, { kind: "semaphore", mode: "read", amount });
    expect(violations(holder(10, 1), holder(20, 1))).toEqual([]);
    expect(violations(holder(10, 1), holder(20, 2))).not.toEqual([]);
  });

  test("finds tokens that fall or appear twice", () => {
    const [first, second] = [grant(10, { token: 9 }), grant(20, { token: 8 })];
    expect(violations(first, exit(first, 11), second).join()).toContain('tokens of "long" fell');
    const [one, twin] = [grant(10, { token: 9 }), grant(20, { token: 9 })];
    expect(violations(one, exit(one, 11), twin).join()).toContain("was granted twice");
  });

  test("finds a lease that the server ended early, and accepts the end of one that was not renewed", () => {
    const first = grant(10);
    expect(violations(first, exit(first, 20, "server-lost"))).not.toEqual([]);
    expect(violations(first, exit(first, 20, "expired"))).toEqual([]);
  });

  test("counts hand-overs between the builds in both directions", () => {
    const [a, b, c] = [grant(10), grant(20, { build: "new", callMs: 5 }), grant(30, { callMs: 15 })];
    expect(judge([a, exit(a, 11), b, exit(b, 21), c]).handedOver).toEqual({ oldToNew: 1, newToOld: 1 });
  });

  test("finds a build that waits longer than one version alone, and one that gets less than its share", () => {
    const [short, long] = [grant(10), grant(100_000, { callMs: 20, build: "new" })];
    const [alone, mixed] = [judge([short]), judge([short, exit(short, 11), long])];
    expect(compare(mixed, [alone], undefined, false).join()).toContain('new build waited 99980 ms for "long"');
    expect(compare(alone, [alone], undefined, false)).toEqual([]);
    const many = Array.from({ length: 100 }, (_, i) => grant(10 * i)).flatMap((one) => [one, exit(one, one.grantedMs)]);
    const uneven = judge(many);
    expect(compare(uneven, [uneven], { old: 2, new: 2 }, false)).toEqual([
      'new build was granted "long" 0 times, of 50 that would be fair',
    ]);
  });

  test("a caller that was never served is a violation, but one with a short time limit is not", () => {
    const facts = { type: "ungranted", name: "long", worker: 1, build: "new", callMs: 0, endMs: 9 } as const;
    expect(violations({ ...facts, why: "starved" })).toHaveLength(1);
    expect(violations({ ...facts, why: "timeout" })).toEqual([]);
  });
});

test.each([
  ["--seconds", "1"],
  ["--mistake", "none"],
  ["--sed", "1"],
])("wrong options are refused: %s %s", (...words) => {
  expect(() => optionsOf(words)).toThrow();
});

describe("on a real server", () => {
  let builds: Builds;
  beforeAll(async () => {
    builds = await unpackBuilds();
  });
  afterAll(() => builds?.remove());
  const mixed = PHASES.find(({ name }) => name === "mixed") as (typeof PHASES)[number];

  test("both builds together keep all promises", { timeout: 120_000 }, async () => {
    const options = { seconds: 3, seed: 1, mistake: undefined, json: undefined };
    const { verdict, crashes } = await play(mixed, 1, builds, options);
    expect([...verdict.violations, ...crashes]).toEqual([]);
    expect(verdict.grants).toBeGreaterThan(0);
  });

  test("a hand-over that grants less than the waiter relies on is caught", { timeout: 120_000 }, async () => {
    const options = { seconds: 3, seed: 1, mistake: "brief-hand-off", json: undefined } as const;
    const { verdict } = await play(mixed, 1, builds, options);
    expect(verdict.violations.join()).toMatch(/two holders/);
  });
});

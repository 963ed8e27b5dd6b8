/** Two processes with a hundred callers each on one name: who was in at which time, in which order, and how often. */
import { expect, test } from "vitest";
import { BRIEF_LEASE_MS } from "../../src/testing/delays.js";
import { sharedClockMs, startCrowd } from "./programs/programs.js";
import { useFaultScene } from "./scene.js";

const scene = useFaultScene();

const CALLERS = 100;
const FOR_MS = 5_000;

interface Section {
  readonly caller: string;
  readonly token: number;
  readonly beginMs: number;
  readonly endMs: number;
}

test("2 × 100 callers exclude each other, in the order of their tokens, and each gets the same share", async () => {
  const { name, server, keys } = scene;
  const crowds = [startCrowd(server.port), startCrowd(server.port)];
  try {
    await Promise.all(crowds.map((crowd) => crowd.call("ready", { name })));
    const startAtMs = sharedClockMs() + BRIEF_LEASE_MS;
    const input = { name, counterKey: `counter:${name}`, callers: CALLERS, startAtMs, forMs: FOR_MS };
    const answers = await Promise.all(crowds.map((crowd) => crowd.call<Float64Array>("work", input)));
    const sections = answers.flatMap((answer, process) => sectionsOf(answer, process));
    sections.sort((a, b) => a.beginMs - b.beginMs);

    expect(sections.length, "each had a turn").toBeGreaterThan(2 * CALLERS);
    expect(overlaps(sections)).toEqual([]);
    expect(Number(await server.command("GET", input.counterKey))).toBe(sections.length);
    expect(sections.every(({ token }, i) => i === 0 || token > (sections[i - 1]?.token ?? Infinity))).toBe(true);
    expect(jain(counts(sections))).toBeGreaterThanOrEqual(0.99);
    expect(await server.command("EXISTS", keys.lock, keys.queue)).toBe(0);
  } finally {
    await Promise.all(crowds.map((crowd) => crowd.kill()));
  }
});

test("the checks above fail for callers without a lock", () => {
  const at = (beginMs: number, endMs: number, caller = "a"): Section => ({ caller, token: 0, beginMs, endMs });
  expect(overlaps([at(0, 2), at(1, 3)])).toHaveLength(1);
  expect(overlaps([at(0, 9), at(1, 2), at(3, 4)])).toHaveLength(2);
  expect(overlaps([at(0, 1), at(1, 2)])).toEqual([]);
  expect(jain([1, 1, 1, 1])).toBe(1);
  expect(jain([4, 0, 0, 0])).toBe(0.25);
});

function sectionsOf(numbers: Float64Array, process: number): Section[] {
  return Array.from({ length: numbers.length / 4 }, (_, i) => {
    const [caller = 0, token = 0, beginMs = 0, endMs = 0] = numbers.subarray(4 * i, 4 * i + 4);
    return { caller: `${process}/${caller}`, token, beginMs, endMs };
  });
}

/** Sections that began before an earlier one had ended. Expects them by their beginning. */
function overlaps(sections: readonly Section[]): Section[] {
  let endMs = -Infinity;
  return sections.filter((section) => {
    const isInside = section.beginMs < endMs;
    endMs = Math.max(endMs, section.endMs);
    return isInside;
  });
}

function counts(sections: readonly Section[]): number[] {
  const each = new Map<string, number>();
  for (let process = 0; process < 2; process += 1) {
    for (let caller = 0; caller < CALLERS; caller += 1) each.set(`${process}/${caller}`, 0);
  }
  for (const { caller } of sections) each.set(caller, (each.get(caller) ?? 0) + 1);
  return [...each.values()];
}

/** Jain's index of fairness: 1 when all have the same, 1/n when one has everything. */
function jain(shares: readonly number[]): number {
  const sum = shares.reduce((total, share) => total + share, 0);
  return sum ** 2 / (shares.length * shares.reduce((total, share) => total + share ** 2, 0));
}

/** Two processes with a hundred callers each on one lock: checks exclusion, order and fairness. */
import { expect, test } from "vitest";
import { BRIEF_LEASE_MS } from "../../src/testing/delays.js";
import { sharedClockMs, startCrowd } from "./programs/programs.js";
import { useFaultScene } from "./scene.js";

const scene = useFaultScene();

const CALLERS = 100;
const FOR_MS = 5_000;
/** The maximum number of leases that one grant serves under contention; see docs/adr/137. */
const BATCH = 128;

interface Section {
  readonly caller: string;
  readonly token: number;
  readonly beginMs: number;
  readonly endMs: number;
}

test("2 × 100 callers exclude each other in the order of their tokens, and take turns", async () => {
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
    expect(differenceWithin(sections, 0), "the callers of a process take turns").toBeLessThanOrEqual(1);
    expect(differenceWithin(sections, 1), "the callers of a process take turns").toBeLessThanOrEqual(1);
    expect(longestRun(sections), "no process goes on while the other waits").toBeLessThanOrEqual(BATCH);
    expect(await server.command("EXISTS", keys.lock, keys.queue)).toBe(0);
  } finally {
    await Promise.all(crowds.map((crowd) => crowd.kill()));
  }
});

test("the checks detect overlaps, unequal turns and processes that run on while others wait", () => {
  const at = (beginMs: number, endMs: number, caller = "a"): Section => ({ caller, token: 0, beginMs, endMs });
  expect(overlaps([at(0, 2), at(1, 3)])).toHaveLength(1);
  expect(overlaps([at(0, 9), at(1, 2), at(3, 4)])).toHaveLength(2);
  expect(overlaps([at(0, 1), at(1, 2)])).toEqual([]);
  expect(differenceWithin([at(0, 1, "0/1"), at(1, 2, "0/1"), at(2, 3, "1/1")], 0)).toBe(2);
  expect(longestRun(["0/1", "1/1", "1/2", "1/3", "0/2", "1/1"].map((caller, i) => at(i, i + 1, caller)))).toBe(3);
});

function sectionsOf(numbers: Float64Array, process: number): Section[] {
  return Array.from({ length: numbers.length / 4 }, (_, i) => {
    const [caller = 0, token = 0, beginMs = 0, endMs = 0] = numbers.subarray(4 * i, 4 * i + 4);
    return { caller: `${process}/${caller}`, token, beginMs, endMs };
  });
}

/** Sections that began before an earlier one had ended. Expects them sorted by their beginning. */
function overlaps(sections: readonly Section[]): Section[] {
  let endMs = -Infinity;
  return sections.filter((section) => {
    const isInside = section.beginMs < endMs;
    endMs = Math.max(endMs, section.endMs);
    return isInside;
  });
}

/** Difference between the most and the fewest sections of any caller of one process. */
function differenceWithin(sections: readonly Section[], process: number): number {
  const counts = Array.from({ length: CALLERS }, () => 0);
  for (const { caller } of sections) {
    const [of, index] = caller.split("/").map(Number);
    if (of === process && index !== undefined) counts[index] = (counts[index] ?? 0) + 1;
  }
  return Math.max(...counts) - Math.min(...counts);
}

/** Longest run of sections of one process, within the time in which both processes worked. */
function longestRun(sections: readonly Section[]): number {
  const processes = sections.map(({ caller }) => caller.split("/")[0]);
  const begin = Math.max(processes.indexOf("0"), processes.indexOf("1"));
  const end = Math.min(processes.lastIndexOf("0"), processes.lastIndexOf("1"));
  let [longest, run] = [0, 0];
  for (let at = begin; at <= end; at += 1) {
    run = processes[at] === processes[at - 1] ? run + 1 : 1;
    longest = Math.max(longest, run);
  }
  return longest;
}

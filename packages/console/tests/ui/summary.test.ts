import { describe, expect, it } from "vitest";
import type { FindingView, LockRow } from "../../src/api.js";
import { readFilter } from "../../src/filter.js";
import { plain } from "../../src/plain.js";
import {
  doctorSummary,
  freeText,
  isNameTyped,
  partialText,
  problemHeading,
  releaseCommand,
  talliesOf,
  topologyText,
} from "../../src/ui/summary.js";
import { clientIdIn, whoText } from "../../src/ui/who.js";

function row(given: Partial<LockRow>): LockRow {
  return {
    state: "held",
    waiterCount: 0,
    pause: null,
    holders: [],
    holderCount: 1,
    goneCount: 0,
    label: null,
    name: "a",
    ...given,
  } as LockRow;
}

it("the counts of the first page equal the number of rows that their filters list", () => {
  const pause = { by: "ana", reason: "db", sinceAtMs: 1, untilAtMs: null, id: "1" };
  const rows = [
    row({}),
    row({ waiterCount: 2 }),
    row({ state: "paused", pause, waiterCount: 1 }),
    row({ state: "held", pause }),
    row({ state: "counting" }),
    row({ goneCount: 1 }),
  ];
  const tallies = talliesOf(rows);
  expect(tallies.map(({ word, n }) => `${n} ${word}`)).toEqual(["4 held", "2 waited for", "2 paused", "1 gone"]);
  for (const { q, n } of tallies) expect(rows.filter((one) => readFilter(q)(one, 0))).toHaveLength(n);
});

it("a search for deadlocks that did not read all locks never says that there are none", () => {
  const why = "there are too many locks, or a server did not reply.";
  expect(partialText(0)).toBe(`Not all locks were searched, so there may be deadlocks: ${why}`);
  expect(partialText(1)).toBe(`Not all locks were searched, so there may be more deadlocks: ${why}`);
});

describe("the command that releases a hold", () => {
  const lock = (more: Partial<LockRow>): LockRow => row({ key: null, needsTopology: null, ...more });

  it("contains the lock's name and token, quoted for a shell", () => {
    expect(releaseCommand(lock({ name: "deploy:prod" }), 12)).toBe("holdfast release deploy:prod --token 12 -m 'WHY'");
    expect(releaseCommand(lock({ name: "it's $(two)" }), 12)).toBe(
      "holdfast release 'it'\\''s $(two)' --token 12 -m 'WHY'",
    );
  });

  it.each([
    [{ name: "a" }, null],
    [{ name: "a", key: "own" }, 12],
    [{ name: "-a" }, 12],
    [{ name: "a\nb" }, 12],
    [{ name: "a\u202eb" }, 12],
    [{ kind: "redlock", needsTopology: "redlock" }, 12],
    [{ kind: "mutex", needsTopology: "single-server" }, 12],
  ] as const)("is absent for %j with the token %j", (more, token) => {
    expect(releaseCommand(lock(more), token)).toBeUndefined();
  });
});

it("a lock that needs another topology says which servers it needs", () => {
  expect(topologyText(row({ needsTopology: "redlock" }))).toContain("all of its servers (--redlock)");
  expect(topologyText(row({ needsTopology: "single-server", onServers: [] }))).toContain("that server alone (-r)");
  expect(topologyText(row({ needsTopology: "single-server", onServers: ["10.0.0.5:6379"] }))).toMatch(
    /on a single server \(10\.0\.0\.5:6379\), .* that server alone \(-r\)/,
  );
  expect(topologyText(row({ needsTopology: "single-server", onServers: ["a:1", "b:2"] }))).toMatch(
    /a different lock on each of 2 servers \(a:1, b:2\).* one of them alone \(-r\)/,
  );
  expect(topologyText(row({ needsTopology: null }))).toBeUndefined();
});

it("a page offers only the ways to free a lock that it has", () => {
  expect(freeText({ isButton: true, isCommand: true })).toMatch(/force-release it below, or run the printed command/);
  expect(freeText({ isButton: false, isCommand: true })).not.toContain("below");
  expect(freeText({ isButton: true, isCommand: false })).not.toContain("command");
  expect(freeText({ isButton: false, isCommand: false })).toBeUndefined();
});

it("the heading of a failed action says that nothing was changed only if that is certain", () => {
  expect(problemHeading({ status: 409, code: "stale" })).toBe("Nothing was changed");
  expect(problemHeading({ status: 409, code: "undecided" })).toBe("The outcome is unknown");
  expect(problemHeading({ status: 503, code: "redis-down", mayHaveRun: true })).toBe("The outcome is unknown");
  expect(problemHeading({ status: 503, code: "refused" })).toBe("The action failed");
  expect(problemHeading(undefined)).toBe("The outcome is unknown");
});

describe("the results of the doctor", () => {
  const result = (id: string, status: FindingView["status"], severity: FindingView["severity"] = "info") =>
    ({ id, status, severity, node: "a", measured: "", risk: null, fix: null }) satisfies FindingView;

  it("are counted by status, and findings come before unknown results", () => {
    const { text, findings } = doctorSummary([
      result("acl", "unknown", "critical"),
      result("clock", "finding", "info"),
      result("memory", "finding", "critical"),
      result("role", "ok"),
      result("role", "ok"),
      result("cluster", "skipped"),
    ]);
    expect(text).toBe("2 findings, 1 unknown, 2 results ok");
    expect(findings.map(({ id }) => id)).toEqual(["memory", "clock", "acl"]);
    expect(doctorSummary([result("role", "ok")]).text).toBe("no findings, 1 result ok");
  });

  it("list a check as fine only if it found nothing on any server", () => {
    const { fine } = doctorSummary([result("role", "ok"), result("memory", "ok"), result("memory", "finding")]);
    expect(fine).toEqual(["role"]);
  });
});

it("a client without a known process is unknown, unless its owner id shows that it uses another library", () => {
  const nameOf = (owner: string | null): string =>
    whoText({ host: null, pid: null, app: null, clientId: clientIdIn(owner) });
  expect(nameOf(null)).toBe("unknown client");
  expect(nameOf("legacy")).toBe("not a Holdfast client");
  expect(nameOf("ReH8GUZ6AOmR69do/1/30000/1/a%20label")).toBe("ReH8GUZ6AOmR69do");
});

describe("untrusted text", () => {
  it("is shown with escapes for control characters and for characters that change the writing direction", () => {
    expect(plain("a\u202eb\u200f\u061c\u2066")).toBe("a\\u202eb\\u200f\\u061c\\u2066");
    expect(plain("\u001b[31m\n")).toBe("\\x1b[31m\\x0a");
    expect(plain("\u05e9\u05dc\u05d5\u05dd \ud83d\udc68\u200d\ud83d\udd27")).toBe(
      "\u05e9\u05dc\u05d5\u05dd \ud83d\udc68\u200d\ud83d\udd27",
    );
  });

  it("can be typed as it is shown to confirm an action", () => {
    expect(isNameTyped("a\\u202eb", "a\u202eb")).toBe(true);
    expect(isNameTyped("a\u202eb", "a\u202eb")).toBe(true);
    expect(isNameTyped("ab", "a\u202eb")).toBe(false);
  });
});

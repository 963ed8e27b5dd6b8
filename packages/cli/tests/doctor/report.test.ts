/** Tests how findings are printed: everything that one missing permission leaves open is one entry. */
import { expect, test } from "vitest";
import type { Finding } from "../../src/doctor/check.js";
import { report } from "../../src/doctor/report.js";

const about = { address: "redis://db", tookMs: 300, isVerbose: false, paint: (_style: string, text: string) => text };
const NODES = ["a:6379", "b:6379", "c:6379"];
const unknown = (id: string, node: string, fix: string): Finding => ({
  ...{ id, node, fix, severity: "info", status: "unknown", risk: "" },
  measured: `the server does not show what ${id} needs`,
});
const entriesIn = (text: string): number => text.split("\n").filter((line) => /^ {2}\S/.test(line)).length;

test("checks that are unknown for one missing permission are one entry, with the command and the servers", () => {
  const findings = ["version", "grace", "replicas"].flatMap((id) =>
    NODES.map((node) => unknown(id, node, id === "grace" ? "grant INFO to this user: why" : "grant INFO to this user")),
  );
  const clocks = unknown("clocks", "a:6379", "grant TIME to this user");
  const text = report([...findings, clocks], about);
  expect(text).toContain("UNKNOWN (not verified)\n");
  expect(text).toContain("  version, grace, replicas  a:6379, b:6379, c:6379: not verified without INFO\n");
  expect(text).toContain("grant INFO to this user; -v shows each check\n");
  expect(text).toContain("  clocks  a:6379: the server does not show what clocks needs\n");
  expect(entriesIn(text)).toBe(2);
  expect(text).toContain("10 unknown");
  expect(entriesIn(report(findings, { ...about, isVerbose: true }))).toBe(9);
});

test("checks that are unknown for other reasons are separate entries", () => {
  const findings = NODES.map((node) => unknown("latency", node, "give it more time with --for"));
  expect(entriesIn(report(findings, about))).toBe(3);
});

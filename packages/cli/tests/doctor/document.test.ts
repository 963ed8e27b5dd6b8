/** docs/doctor.md tells of every check what the check itself says. */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import type { Check } from "../../src/doctor/check.js";
import { CHECK_IDS, CHECKS } from "../../src/doctor/table.js";
import { doctor } from "../../src/verbs/doctor.js";

const DOCUMENT = fileURLToPath(new URL("../../../../docs/doctor.md", import.meta.url));
const SECTION = /(<!-- checks: [^>]*-->\n)[\s\S]*(<!-- end of checks -->)/;

/** The checks as the binding table of the command line has them, and behind them that of which the recipes speak. */
const ALL = [
  ...[
    "eviction",
    "memory",
    "persistence",
    "restart-wipe",
    "grace",
    "role",
    "replicas",
    "replica-lag",
    "exposure",
    "acl",
  ],
  ...[
    "version",
    "scripts",
    "pubsub",
    "cluster",
    "redlock",
    "clock-skew",
    "clock-runs",
    "latency",
    "busy",
    "stop-writes",
  ],
  ...["connections", "client-timeouts", "shared", "leftovers", "lost-pauses", "deadlocks"],
];

function section({ id, reads, levels, risk, fix }: Check): string {
  return `### ${id}\n\n- **Reads** ${reads}.\n- **Severity**: ${levels}.\n- **Risk**: ${risk}\n- **Fix**: ${fix}.\n`;
}

test("every check that there is to be is there, once", () => {
  expect(CHECK_IDS).toEqual(ALL);
});

test("the document has a section for each check, in the check's own words", async () => {
  const text = readFileSync(DOCUMENT, "utf8");
  const written = text.replace(
    SECTION,
    (_, begin: string, end: string) => `${begin}\n${CHECKS.map(section).join("\n")}\n${end}`,
  );
  expect(written).toMatch(SECTION);
  await expect(written).toMatchFileSnapshot(DOCUMENT);
});

test("the help names every check, and the table for 3 a.m. none that is not there", () => {
  for (const id of CHECK_IDS) expect(doctor.help).toContain(id);
  const [table = ""] = /\| what you see[\s\S]*?\n\n/.exec(readFileSync(DOCUMENT, "utf8")) ?? [];
  const named = [...table.matchAll(/`([a-z-]+)`/g)]
    .map(([, id = ""]) => id)
    .filter((id) => !/^(timeout|tcp-keepalive)$/.test(id));
  expect(named.length).toBeGreaterThan(20);
  for (const id of named) expect(CHECK_IDS).toContain(id);
});

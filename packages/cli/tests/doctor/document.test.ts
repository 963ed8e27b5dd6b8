/** Tests that the pages about the doctor describe every check in the check's own words. */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import type { Check } from "../../src/doctor/check.js";
import { ACCESS_CHECKS, CHECK_IDS, DATA_CHECKS, OPERATION_CHECKS } from "../../src/doctor/table.js";
import { doctor } from "../../src/verbs/doctor.js";

const DOCS = new URL("../../../../docs/", import.meta.url);
const PAGES = [
  { page: "doctor-data.md", checks: DATA_CHECKS },
  { page: "doctor-access.md", checks: ACCESS_CHECKS },
  { page: "doctor-operation.md", checks: OPERATION_CHECKS },
];
const SECTION = /(<!-- checks: [^>]*-->\n)[\s\S]*(<!-- end of checks -->)/;

/** The checks as the command line binds them, followed by the check that the recipes mention. */
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
  ...["connections", "client-timeouts", "protocols", "shared", "leftovers", "lost-pauses", "deadlocks"],
];

function section({ id, reads, levels, risk, fix }: Check): string {
  return `## ${id}\n\n- **Checks** ${reads}.\n- **Severity**: ${levels}.\n- **Risk**: ${risk}\n- **Fix**: ${fix}.\n`;
}

test("every expected check exists exactly once", () => {
  expect(CHECK_IDS).toEqual(ALL);
});

test.each(PAGES)("$page has a section for each of its checks, in the check's own words", async ({ page, checks }) => {
  const path = fileURLToPath(new URL(page, DOCS));
  const written = readFileSync(path, "utf8").replace(
    SECTION,
    (_, begin: string, end: string) => `${begin}\n${checks.map(section).join("\n")}\n${end}`,
  );
  expect(written).toMatch(SECTION);
  await expect(written).toMatchFileSnapshot(path);
});

test("the help names every check, and the 3 a.m. table names only checks that exist", () => {
  for (const id of CHECK_IDS) expect(doctor.help).toContain(id);
  const [table = ""] = /\| what you see[\s\S]*?\n\n/.exec(readFileSync(new URL("doctor.md", DOCS), "utf8")) ?? [];
  const named = [...table.matchAll(/`([a-z-]+)`/g)]
    .map(([, id = ""]) => id)
    .filter((id) => !/^(timeout|tcp-keepalive)$/.test(id));
  expect(named.length).toBeGreaterThan(20);
  for (const id of named) expect(CHECK_IDS).toContain(id);
});

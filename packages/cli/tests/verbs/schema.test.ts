/** Tests that the JSON output of the verbs matches its schema and has no other fields. */
import { readFileSync } from "node:fs";
import { Ajv, type ValidateFunction } from "ajv";
import { appendHistory } from "holdfast/admin";
import { expect, test } from "vitest";
import { until } from "../../../holdfast/src/testing/delays.js";
import { newStage } from "./harness.js";

const stage = newStage();

type Schema = { readonly [key: string]: unknown };
const schema = JSON.parse(readFileSync(new URL("../../../../docs/cli.schema.json", import.meta.url), "utf8")) as Schema;

/** Forbids fields that the schema does not name, so that an undocumented field is found. */
function closed(part: unknown): unknown {
  if (Array.isArray(part)) return part.map(closed);
  if (typeof part !== "object" || part === null) return part;
  const inner = Object.fromEntries(Object.entries(part).map(([key, value]) => [key, closed(value)]));
  return "properties" in part ? { ...inner, additionalProperties: false } : inner;
}

const ajv = new Ajv({ allowUnionTypes: true }).addSchema({ ...(closed(schema) as Schema), $id: "cli" });

function schemaOf(verb: string): ValidateFunction {
  const found = ajv.getSchema(`cli#/definitions/${verb}`);
  if (found === undefined) throw new Error(`the schema has nothing of ${verb}`);
  return found as ValidateFunction;
}

/** Runs a verb and checks each line of its output against the schema. */
async function fits(verb: string, ...words: readonly string[]): Promise<readonly Schema[]> {
  const lines = linesOf((await stage.say(...words, "--json")).stdout);
  check(verb, lines);
  return lines;
}

function linesOf(stdout: string): readonly Schema[] {
  return stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Schema);
}

function check(verb: string, lines: readonly Schema[]): void {
  const isValid = schemaOf(verb);
  for (const line of lines) expect([line, isValid(line), isValid.errors]).toEqual([line, true, null]);
}

test("lists and lock pages of every kind and state match their schemas", async () => {
  const { holdfast } = stage;
  const one = stage.client("api");
  await one.mutex("held").acquire({ label: "release 4.2" });
  await stage.queueUp(stage.client("ci"), "held", "next");
  await one.semaphore("pool", { permits: 3 }).acquire({ permits: 2 });
  await one.readWriteLock("catalog").read.acquire();
  await one.election("leader").campaign("http://10.0.0.7");
  await one.countDownLatch("latch").trySetCount(3);
  void one
    .barrier("gate", { parties: 2 })
    .arrive({ waitMs: 600_000 })
    .catch(() => {});
  await holdfast.pause("paused", { by: "ana", label: "maintenance", untilAtMs: Date.now() + 3_600_000 });
  await appendHistory(holdfast, { what: "released", kind: "mutex", name: "held", token: 5, heldMs: 12, waitedMs: 3 });
  await appendHistory(holdfast, { what: "skipped", kind: "mutex", name: "held", reason: "it ran already" });

  await expect
    .poll(async () =>
      (await fits("ls", "ls")).flatMap(({ locks }) => locks as { kind: string }[]).map(({ kind }) => kind),
    )
    .toContain("barrier");
  for (const name of ["held", "pool", "catalog", "leader", "latch", "gate", "paused", "nobody"])
    await fits("show", "show", name);
  await fits("history", "history", "held");
  await fits("clients", "clients");
  await fits("top", "top", "--once");
  await fits("elect-who", "elect", "leader", "--who");
  await fits("elect-who", "elect", "nobody", "--who");
}, 240_000);

test("deadlocks, and the release of all locks of a client, match their schemas", async () => {
  const [a, b] = [stage.client("a"), stage.client("b")];
  const lease = await a.mutex("x").acquire();
  await b.mutex("y").acquire();
  await stage.queueUp(a, "y", "y");
  await stage.queueUp(b, "x", "x");
  const [found] = await fits("ls-deadlocks", "ls", "--deadlocks");
  expect(found?.deadlocks).toHaveLength(1);
  const [clientId = ""] = lease.owner.split("/");
  const [released] = await fits("release-client", "release", "--client", clientId, "-m", "why", "--force", "--yes");
  expect(released?.released).toBe(1);
}, 240_000);

test("actions, successful and refused, match their schemas", async () => {
  const { holdfast } = stage;
  const lease = await holdfast.mutex("forced").acquire();
  await fits("release", "release", "forced", "--token", "1", "-m", "why");
  await fits("release", "release", "forced", "--token", String(lease.token), "-m", "why");
  await fits("pause-verb", "pause", "nightly", "-m", "why", "--for", "1h");
  await fits("pause-verb", "pause", "nightly", "-m", "again");
  await fits("resume", "resume", "nightly");
  await fits("resume", "resume", "nightly");
  const leadership = await holdfast.election("deeds").campaign("here");
  await fits("elect-resign", "elect", "deeds", "--resign", "--token", "1");
  await fits("elect-resign", "elect", "deeds", "--resign", "--token", String(leadership.term));
  const candidate = stage.start("elect", "led", "--lease", "3s", "--delay", "1ms", "--json");
  await until(() => candidate.stdout().includes('"renewed"'), "a renewal");
  candidate.child.kill("SIGTERM");
  const events = linesOf((await candidate.ended).stdout);
  expect(new Set(events.map(({ event }) => event))).toEqual(new Set(["candidate", "elected", "renewed", "resigned"]));
  check("elect-event", events);
}, 240_000);

test("doctor reports match their schema", async () => {
  const reports = await fits("doctor", "doctor", "--only", "memory,scripts,clock-runs");
  expect(reports.flatMap(({ checks }) => checks)).toHaveLength(3);
}, 240_000);

test("a schema rejects a wrong, missing or additional field", () => {
  const isValid = schemaOf("release");
  expect(isValid({ v: 1, released: true, holder: null, next: null })).toBe(true);
  expect(isValid({ v: 1, released: "yes", holder: null, next: null })).toBe(false);
  expect(isValid({ v: 1, released: true, holder: null })).toBe(false);
  expect(isValid({ v: 1, released: true, holder: null, next: null, more: 1 })).toBe(false);
});

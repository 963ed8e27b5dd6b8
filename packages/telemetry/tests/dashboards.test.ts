/** Checks that the dashboards in docs/grafana use only metrics and labels that the real `prom-client` exports. */
import { channel } from "node:diagnostics_channel";
import { readdirSync, readFileSync } from "node:fs";
import { cache, once } from "@holdfast/recipes";
import { createHoldfast, type Holdfast } from "holdfast";
import { Redis } from "ioredis";
import { Registry } from "prom-client";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type RedisServer, startRedis } from "../../../tests/support/redis-server.js";
import { startMetrics } from "../src/prometheus/index.js";

interface Dashboard {
  readonly title: string;
  readonly panels: readonly { readonly targets?: readonly { expr: string; legendFormat?: string }[] }[];
  readonly templating: { readonly list: readonly { name: string; type: string; query: string }[] };
}

const FOLDER = new URL("../../../docs/grafana/", import.meta.url);
const dashboards = readdirSync(FOLDER)
  .filter((file) => file.endsWith(".json"))
  .map((file) => [file, JSON.parse(readFileSync(new URL(file, FOLDER), "utf8")) as Dashboard] as const);
/** The labels of each exported metric name. */
let emitted: Map<string, ReadonlySet<string>>;
/** The exported names of each metric. A histogram has three. */
let families: string[][];
let server: RedisServer;
let redis: Redis;
let holdfast: Holdfast;

beforeAll(async () => {
  server = await startRedis();
  redis = new Redis({ port: server.port });
  holdfast = createHoldfast({ redis });
  const register = new Registry();
  const stop = startMetrics({ register });
  try {
    emitted = labelsIn(await playAll(register));
    families = register.getMetricsAsArray().map((metric) => {
      const { name, type } = metric as unknown as { name: string; type: string };
      return type === "histogram" ? [`${name}_bucket`, `${name}_sum`, `${name}_count`] : [name];
    });
  } finally {
    stop();
  }
});

afterAll(async () => {
  await holdfast?.close();
  redis?.disconnect();
  await server?.stop();
});

/** Produces a value for every metric. @returns the metrics in Prometheus's text format */
async function playAll(register: Registry): Promise<string> {
  await once(holdfast, "pay", () => 1);
  await cache(holdfast, "prices", { freshMs: 60_000 }).get("a", () => 1);
  const run = { kind: "mutex", lockName: "nightly", clientId: "c", tick: "t", owner: "o", token: 1 };
  channel("holdfast:run:started").publish(run);
  const request = { method: "POST", route: "/payments", key: "k", scope: undefined, status: 201, error: undefined };
  channel("holdfast:idempotency").publish({ ...request, outcome: "carried-out" });
  const leadership = await holdfast.election("scheduler").campaign("here");
  const permit = await holdfast.semaphore("api", { permits: 2 }).acquire();
  const held = await holdfast.mutex("a").acquire();
  const waiting = holdfast.mutex("a").run(() => {}, { waitMs: 600_000 });
  await held.release();
  await waiting;
  const text = await register.metrics();
  await Promise.all([leadership.release(), permit.release()]);
  return text;
}

/** Parses the labels of each metric from Prometheus's text format. */
function labelsIn(text: string): Map<string, ReadonlySet<string>> {
  const found = new Map<string, Set<string>>();
  for (const [, name = "", list = ""] of text.matchAll(/^(holdfast_\w+)(?:\{(.*)\})? /gm)) {
    const labels = found.get(name) ?? new Set();
    for (const [, label = ""] of list.matchAll(/(\w+)="(?:[^"\\]|\\.)*"/g)) labels.add(label);
    found.set(name, labels);
  }
  return found;
}

/** Returns each metric in an expression, with the labels that it filters by. */
function selectorsIn(expr: string): [name: string, labels: string[]][] {
  return [...expr.matchAll(/(holdfast_\w+)(?:\{([^}]*)\})?/g)].map(([, name = "", list = ""]) => [
    name,
    [...list.replaceAll(/"[^"]*"/g, "").matchAll(/\w+/g)].map(([label]) => label),
  ]);
}

/** Returns the labels in the `by` clauses of an expression. */
function groupedBy(expr: string): string[] {
  return [...expr.matchAll(/by \(([^)]*)\)/g)].flatMap(([, list = ""]) => list.split(/,\s*/));
}

test.each(dashboards)("%s uses only metrics and labels that exist", (_, { title, panels, templating }) => {
  expect(title).not.toBe("");
  const targets = panels.flatMap(({ targets: of = [] }) => of);
  expect(targets.length).toBeGreaterThan(10);
  for (const { expr, legendFormat = "" } of targets) {
    const selectors = selectorsIn(expr);
    expect(selectors.length, expr).toBeGreaterThan(0);
    for (const [name, labels] of selectors) {
      expect([...emitted.keys()], expr).toContain(name);
      for (const label of [...labels, ...groupedBy(expr)])
        expect([...(emitted.get(name) ?? [])], expr).toContain(label);
    }
    for (const [, label] of legendFormat.matchAll(/\{\{\s*(\w+)\s*\}\}/g))
      expect(groupedBy(expr), expr).toContain(label);
  }
  const all = new Set([...emitted.values()].flatMap((labels) => [...labels]));
  const variables = templating.list.filter(({ type }) => type === "query");
  expect(variables.length).toBeGreaterThan(0);
  for (const { query } of variables) expect([...all]).toContain(/, (\w+)\)$/.exec(query)?.[1]);
});

test("every metric appears in a dashboard", () => {
  const targets = dashboards.flatMap(([, { panels }]) => panels.flatMap(({ targets: of = [] }) => of));
  const shown = new Set(targets.flatMap(({ expr }) => selectorsIn(expr).map(([name]) => name)));
  expect(families.length).toBeGreaterThan(10);
  expect(families.filter((names) => !names.some((name) => shown.has(name)))).toEqual([]);
  // Every metric must have a series here. Otherwise the dashboards' labels would be checked against nothing.
  expect(families.filter(([name = ""]) => !emitted.has(name))).toEqual([]);
});

test("panels of lost leases exclude caches because each invalidation during a load counts as a loss", () => {
  const targets = dashboards.flatMap(([, { panels }]) => panels.flatMap(({ targets: of = [] }) => of));
  const ofLosses = targets.filter(({ expr }) => expr.includes("holdfast_lock_lost_total"));
  expect(ofLosses.length).toBeGreaterThan(0);
  for (const { expr } of ofLosses) expect(expr).toContain('kind!="cache"');
});

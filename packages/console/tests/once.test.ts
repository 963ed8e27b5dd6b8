/** `once` calls in the console: how they are listed and resolved. */
import { inspectOnce, once } from "@holdfast/recipes";
import { expect, it } from "vitest";
import { ACTIONS } from "../src/api.js";
import { redisScene, startConsole } from "./scene.js";

const redis = redisScene();

async function blocked(key: string, options: { scope?: string } = {}): Promise<void> {
  await once(redis.holdfast, key, () => Promise.reject(new Error("no answer")), {
    ...options,
    after: () => "block",
  }).catch(() => {});
}

it("lists calls by key and state, without their results", async () => {
  const site = await startConsole({ holdfast: redis.holdfast });
  const page = await site.signIn();
  await once(redis.holdfast, "list:1", () => "a secret");
  await once(redis.holdfast, "list:2", () => 1, { scope: "tenant" });
  await blocked("list:3");
  const all = (await page.get("api/once?q=list:*")).json;
  expect(all).toMatchObject({ v: 1, nextCursor: null, isKept: true });
  expect(
    all.rows.map((row: { key: string; scope: string | null; state: string }) => [row.key, row.scope, row.state]).sort(),
  ).toEqual([
    ["list:1", null, "done"],
    ["list:2", "tenant", "done"],
    ["list:3", null, "blocked"],
  ]);
  expect(JSON.stringify(all)).not.toContain("secret");
  expect((await page.get("api/once?q=ist:3")).json.rows).toHaveLength(1);
  expect((await page.get("api/once?state=blocked&q=list:*")).json.rows).toHaveLength(1);
  expect((await page.get("api/once?state=odd")).status).toBe(400);
  expect((await page.get("api/once?cursor=odd")).status).toBe(400);
  expect((await site.ask("api/once")).status, "a stranger").toBe(401);
  expect((await page.post("api/once", {})).status).toBe(405);
});

it("resolves the blocked call that was shown and no other, and writes audit lines", async () => {
  const site = await startConsole({ holdfast: redis.holdfast, allow: ACTIONS });
  const page = await site.signIn("ana");
  await blocked("transfer:1", { scope: "bank/é" });
  const [row] = (await page.get("api/once?q=transfer:1")).json.rows;
  const body = { reason: "the bank says it was booked", key: row.key, scope: row.scope, token: row.token };
  for (const wrong of [
    { how: "odd" },
    { how: "done" },
    { how: "done", value: "{" },
    { how: "release", key: "" },
    { how: "release", token: 0 },
    { how: "release", reason: " " },
  ])
    expect((await page.post("api/actions/resolve-once", { ...body, ...wrong })).status).toBe(400);
  const stale = await page.post("api/actions/resolve-once", { ...body, how: "release", token: row.token - 1 });
  expect([stale.status, stale.json.code]).toEqual([409, "stale"]);
  expect((await inspectOnce(redis.holdfast, "transfer:1", { scope: "bank/é" }))?.state).toBe("blocked");

  const done = await page.post("api/actions/resolve-once", { ...body, how: "done", value: '{"booked":true}' });
  expect([done.status, done.json.message]).toEqual([
    200,
    "Resolved bank/é/transfer:1: callers get the value that was given.",
  ]);
  const again = await once(redis.holdfast, "transfer:1", () => ({ booked: false }), { scope: "bank/é" });
  expect(again).toMatchObject({ value: { booked: true }, replayed: true });
  const late = await page.post("api/actions/resolve-once", { ...body, how: "release" });
  expect([late.status, late.json.code]).toEqual([409, "stale"]);
  expect(site.audit.map(({ action, kind, name, outcome }) => [action, kind, name, outcome])).toEqual([
    ["resolve", "once", "bank/é/transfer:1", "refused"],
    ["resolve", "once", "bank/é/transfer:1", "done"],
    ["resolve", "once", "bank/é/transfer:1", "refused"],
  ]);
});

it("releases a blocked call, so that the next caller runs it", async () => {
  const site = await startConsole({ holdfast: redis.holdfast, allow: ["resolve"] });
  const page = await site.signIn();
  await blocked("again");
  const [row] = (await page.get("api/once?q=again")).json.rows;
  const body = { reason: "it was not booked", key: "again", scope: null, token: row.token, how: "release" };
  expect((await page.post("api/actions/resolve-once", body)).status).toBe(200);
  expect((await once(redis.holdfast, "again", () => 5)).value).toBe(5);
});

it("has no route to resolve calls unless it is allowed, and calls authorize for each name", async () => {
  const site = await startConsole({ holdfast: redis.holdfast, allow: ["release"] });
  const page = await site.signIn();
  expect((await page.post("api/actions/resolve-once", {})).status).toBe(404);
  await once(redis.holdfast, "mine", () => 1, { scope: "a" });
  await once(redis.holdfast, "mine", () => 1, { scope: "b" });
  const mounted = await startConsole({
    holdfast: redis.holdfast,
    authorize: (_req, _action, name) => (name === undefined || name.startsWith("a/") ? { who: "a" } : false),
  });
  const rows = (await mounted.ask("api/once?q=mine")).json.rows;
  expect(rows.map(({ scope }: { scope: string }) => scope)).toEqual(["a"]);
});

/** The history page: search by part of a name. */
import { appendHistory } from "holdfast/admin";
import { expect, it } from "vitest";
import { redisScene, startConsole } from "./scene.js";

const redis = redisScene();

it.each([
  ["part=ORDER", ["Order:1", "order:*2"]],
  ["part=r:*", ["order:*2"]],
  ["part=[x]", ["odd:[x]"]],
  ["part=none", []],
  ["name=Order:1", ["Order:1"]],
  ["name=Order", []],
  ["", ["Order:1", "odd:[x]", "order:*2"]],
])("?%s lists %j", async (query, names) => {
  for (const name of ["Order:1", "order:*2", "odd:[x]"]) {
    await appendHistory(redis.holdfast, { kind: "mutex", name, what: "skipped", reason: "busy" });
  }
  const page = await (await startConsole({ holdfast: redis.holdfast })).signIn();
  const { status, json } = await page.get(`api/history?${new URLSearchParams(query)}`);
  const found = new Set((json.rows as { name: string }[]).map(({ name }) => name));
  expect([status, [...found].toSorted()]).toEqual([200, names]);
  const csv = await page.get(`api/history.csv?${new URLSearchParams(query)}`);
  for (const name of names) expect(csv.text).toContain(name);
});

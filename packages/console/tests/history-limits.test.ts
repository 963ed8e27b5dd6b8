/** The history with more entries than one answer has, and for visitors who see only some of them. */
import { appendHistory } from "holdfast/admin";
import { expect, it } from "vitest";
import { type Answer, redisScene, startConsole } from "./scene.js";

const redis = redisScene();
const LAST = "Incomplete: more events match than this file has. Filter by name or outcome to get the others.";

/** Repeats the last entry of a history, each time with another id: entries with one id count once. */
const REPEAT = `
  local last = redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)[1]
  for n = 1, tonumber(ARGV[1]) do
    redis.call('XADD', KEYS[1], '*', 'at', last[2][2], 'entry', (string.gsub(last[2][4], '"id":"', '%0' .. n .. ' ')))
  end`;

/** Adds entries to the history of a name. */
async function addEntries(name: string, n: number, kind = "mutex"): Promise<void> {
  await appendHistory(redis.holdfast, { kind, name, what: "skipped", reason: "busy" }, { maxEntries: 100_000 });
  const [key = ""] = (await redis.server.command("KEYS", `*history:{${name}}*`)) as string[];
  await redis.server.command("EVAL", REPEAT, 1, key, n - 1);
}

/** What the page gets: the number of rows, and whether entries may be missing. */
const extentOf = ({ json }: Answer): unknown => ({ rows: json.rows.length, isCut: json.isCut });

it("an answer says whether entries are missing, also at the highest limit", async () => {
  await addEntries("many", 10_050);
  const { get } = await startConsole({ holdfast: redis.holdfast });
  for (const limit of [1, 200, 10_000]) {
    expect(extentOf(await get(`api/history?name=many&limit=${limit}`))).toEqual({ rows: limit, isCut: true });
  }
  await addEntries("few", 3);
  expect(extentOf(await get("api/history?name=few&limit=2"))).toEqual({ rows: 2, isCut: true });
  expect(extentOf(await get("api/history?name=few&limit=3"))).toEqual({ rows: 3, isCut: false });
});

it("entries of one kind are found behind newer ones of another kind, and an answer says if it did not read all", async () => {
  await addEntries("kinds:old", 20, "semaphore");
  await addEntries("kinds:new", 500);
  const { get } = await startConsole({ holdfast: redis.holdfast });
  const ask = (limit: number) => get(`api/history?part=kinds:&kind=semaphore&limit=${limit}`);
  expect(extentOf(await ask(10))).toEqual({ rows: 10, isCut: true });
  expect(extentOf(await ask(20))).toEqual({ rows: 20, isCut: false });
  await addEntries("kinds:new", 10_000);
  expect(extentOf(await ask(20))).toEqual({ rows: 0, isCut: true });
});

it("an answer says that entries may be missing if too many others had to be read", async () => {
  await addEntries("others", 10_500);
  const { get } = await startConsole({ holdfast: redis.holdfast });
  expect(extentOf(await get("api/history?name=others&outcome=lost"))).toEqual({ rows: 0, isCut: true });
});

it("a CSV file says in its last line that entries are missing", async () => {
  await addEntries("csv", 30);
  const { get } = await startConsole({ holdfast: redis.holdfast });
  const cut = (await get("api/history.csv?name=csv&limit=20")).text.split("\r\n");
  expect(cut).toHaveLength(1 + 20 + 1 + 1);
  expect(cut.at(-2)).toBe(`${LAST}${",".repeat((cut[0]?.split(",").length ?? 0) - 1)}`);
  const whole = (await get("api/history.csv?name=csv&limit=30")).text.split("\r\n");
  expect(whole).toHaveLength(1 + 30 + 1);
  expect(whole.join()).not.toContain("Incomplete");
});

it("a visitor who may see some locks gets their entries, however many newer ones of other locks there are", async () => {
  await addEntries("visitor:own", 50);
  await addEntries("visitor:other", 300);
  const { ask } = await startConsole({
    holdfast: redis.holdfast,
    authorize: (_, __, name) => (name === undefined || name.endsWith(":own") ? { who: "own@example" } : false),
  });
  const few = await ask("api/history?part=visitor:&limit=20");
  expect(extentOf(few)).toEqual({ rows: 20, isCut: true });
  expect(new Set(few.json.rows.map(({ name }: { name: string }) => name))).toEqual(new Set(["visitor:own"]));
  expect(extentOf(await ask("api/history?part=visitor:&limit=100"))).toEqual({ rows: 50, isCut: false });
  expect((await ask("api/history.csv?part=visitor:")).text).not.toContain("visitor:other");
});

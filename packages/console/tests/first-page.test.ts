/** A long list: its first page arrives before the rest and is marked as incomplete. */
import { beforeAll, expect, it } from "vitest";
import { readEvents } from "./event-reader.js";
import { redisScene, startConsole, TOKEN } from "./scene.js";

const redis = redisScene();
const LOCKS = 2_500;
/** Writes the keys that this many acquires would leave. */
const FILL = `
  for n = 1, tonumber(ARGV[1]) do
    redis.call('SET', (string.gsub(KEYS[1], 'first', tostring(n))), redis.call('GET', KEYS[1]), 'PX', 600000)
  end`;

beforeAll(async () => {
  await redis.holdfast.mutex("first").acquire({ leaseMs: 600_000 });
  const [key] = (await redis.server.command("KEYS", "*mutex:{first}")) as string[];
  await redis.server.command("EVAL", FILL, 1, key ?? "", LOCKS);
});

it("the stream sends the first of many locks early, marked as partial", async () => {
  const site = await startConsole({ holdfast: redis.holdfast });
  const stream = await readEvents(site.port, "/api/events?topics=locks", { authorization: `Bearer ${TOKEN}` });
  const { data: first } = await stream.next("state", ({ locks }) => locks !== null);
  expect(first.locks).toMatchObject({ isPartial: true, isCut: true });
  expect(first.locks.rows.length).toBeGreaterThan(0);
  expect(first.locks.rows.length).toBeLessThan(LOCKS);
  const { data: all } = await stream.next("state", ({ locks }) => locks.isPartial === undefined);
  expect(all.locks).toMatchObject({ isCut: false });
  expect(all.locks.isPartial).toBeUndefined();
  expect(all.locks.rows).toHaveLength(LOCKS + 1);
  stream.close();
});

it("the first locks also come early for a viewer of another page", async () => {
  const site = await startConsole({ holdfast: redis.holdfast });
  const authorization = `Bearer ${TOKEN}`;
  const other = await readEvents(site.port, "/api/events?topics=clients", { authorization });
  await other.next("state", ({ clients }) => clients !== null && clients.isPartial === undefined);
  const stream = await readEvents(site.port, "/api/events?topics=locks", { authorization });
  other.close();
  const { data: first } = await stream.next("state", ({ locks }) => locks !== null);
  expect(first.locks.isPartial).toBe(true);
  const { data: all } = await stream.next("state", ({ locks }) => locks.isPartial === undefined);
  expect(all.locks.rows).toHaveLength(LOCKS + 1);
  stream.close();
});

it("clients come with the first locks, and their counts grow until the list is complete", async () => {
  const site = await startConsole({ holdfast: redis.holdfast });
  const stream = await readEvents(site.port, "/api/events?topics=clients", { authorization: `Bearer ${TOKEN}` });
  const { data: first } = await stream.next("state", ({ clients }) => clients !== null);
  expect(first.clients).toMatchObject({ isPartial: true, isCut: true });
  expect(first.clients.lockCount).toBeLessThan(LOCKS);
  expect(first.clients.clients).toMatchObject([{ heldCount: first.clients.lockCount }]);
  const { data: all } = await stream.next("state", ({ clients }) => clients.isPartial === undefined);
  expect(all.clients).toMatchObject({ isCut: false, lockCount: LOCKS + 1, clients: [{ heldCount: LOCKS + 1 }] });
  stream.close();
});

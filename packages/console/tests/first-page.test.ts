/** A long list: its first page arrives before the rest and is marked as incomplete. */
import { beforeAll, expect, it } from "vitest";
import { readEvents } from "./event-reader.js";
import { addLocks } from "./many-locks.js";
import { redisScene, startConsole, TOKEN } from "./scene.js";

const redis = redisScene();
const LOCKS = 2_500;

beforeAll(() => addLocks(redis, LOCKS));

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

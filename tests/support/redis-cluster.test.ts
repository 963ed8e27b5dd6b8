import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { type RedisCluster, startCluster } from "./redis-cluster.js";

const eventually = { timeout: 15_000, interval: 20 };
/** Slot of the key `a`. */
const SLOT = 15_495;
let cluster: RedisCluster;

beforeAll(async () => {
  cluster = await startCluster();
}, 60_000);
afterAll(() => cluster.stop());

test("three masters share all slots, and each has a replica", async () => {
  const masters = await Promise.all([0, 8_000, 16_383].map((slot) => cluster.masterOf(slot)));
  expect(new Set(masters.map(({ id }) => id)).size).toBe(3);
  for (const master of masters) expect(await cluster.replicasOf(master)).toHaveLength(1);
  expect(await cluster.node(masters[0]?.id ?? "").command("CLUSTER", "MYID")).toBe(masters[0]?.id);
});

test("a slot moves with its keys, and its old owner redirects to the new one", async () => {
  const from = await cluster.masterOf(SLOT);
  const [to] = cluster.nodes.filter(({ id }) => id !== from.id);
  if (to === undefined) throw new Error("a cluster has several nodes");
  await from.command("SET", "a", "1");
  await cluster.moveSlot(SLOT, to);
  expect(await to.command("GET", "a")).toBe("1");
  await expect(from.command("GET", "a")).rejects.toThrow(`MOVED ${SLOT} 127.0.0.1:${to.port}`);
  await vi.waitFor(async () => expect((await cluster.masterOf(SLOT)).id).toBe(to.id), eventually);
  await cluster.moveSlot(SLOT, from);
});

test("a coordinated failover loses nothing, and a killed master restarts as a replica", async () => {
  const old = await cluster.masterOf(SLOT);
  await old.command("SET", "a", "2");
  const next = await cluster.failover(SLOT);
  expect(await next.command("GET", "a")).toBe("2");
  await next.kill();
  await vi.waitFor(async () => expect((await cluster.masterOf(SLOT)).id).toBe(old.id), eventually);
  await next.restart();
  await cluster.settled();
  expect((await cluster.replicasOf(old)).map(({ id }) => id)).toEqual([next.id]);
});

import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { type RedisSentinel, startSentinel } from "./redis-sentinel.js";

const eventually = { timeout: 15_000, interval: 20 };
let topology: RedisSentinel;

beforeAll(async () => {
  topology = await startSentinel();
}, 60_000);
afterAll(() => topology.stop());

test("all sentinels name the first server as master, and both replicas have its data", async () => {
  const master = await topology.master();
  expect(master).toBe(topology.nodes[0]);
  await master.command("SET", "a", "1");
  for (const replica of topology.nodes.slice(1)) {
    await vi.waitFor(async () => expect(await replica.command("GET", "a")).toBe("1"), eventually);
    await expect(replica.command("SET", "a", "2")).rejects.toThrow("READONLY");
  }
});

test("sentinels promote another server on a requested failover and after a crash", async () => {
  const first = await topology.master();
  const second = await topology.failover();
  expect(second.id).not.toBe(first.id);
  expect(String(await second.command("ROLE"))).toContain("master");
  await second.kill();
  await vi.waitFor(async () => expect((await topology.master()).id).not.toBe(second.id), eventually);
  expect(topology.node(second.id)).toBe(second);
});

/** Stuck locks: holders that are gone, and clients that wait for each other. */
import { createHoldfast } from "holdfast";
import { Redis } from "ioredis";
import { expect, it } from "vitest";
import { until } from "../../holdfast/src/testing/delays.js";
import { redisScene, startConsole } from "./scene.js";

const scene = redisScene();
const LONG = { leaseMs: 1_800_000 } as const;

it("the list and the lock's page show since when a holder has been gone and when its lease ends", async () => {
  const redis = new Redis({ port: scene.server.port });
  const dying = createHoldfast({ redis, clientName: "dying" });
  const { owner } = await dying.mutex("report").acquire(LONG);
  await scene.holdfast.mutex("alive").acquire(LONG);
  // Simulates a kill -9: the client sends nothing more. The test cannot move the server's clock, so it backdates the
  // record.
  redis.disconnect();
  const [seconds] = String(await scene.server.command("TIME")).split(/[\s,]/);
  const sinceAtMs = (Number(seconds) - 480) * 1_000;
  await scene.server.command("HSET", `hf:client:${owner.split("/")[0]}`, "seen", `${sinceAtMs}000`);
  try {
    const site = await startConsole({ holdfast: scene.holdfast });
    const { rows } = (await site.get("api/locks?q=gone")).json;
    expect(rows).toMatchObject([
      { name: "report", goneCount: 1, needsTopology: null, holders: [{ app: "dying", goneSinceAtMs: sinceAtMs }] },
    ]);
    expect(rows[0].expiresAtMs).toBeGreaterThan(sinceAtMs);
    expect((await site.get("api/lock?kind=mutex&name=report")).json.holders).toMatchObject([
      { owner, goneSinceAtMs: sinceAtMs },
    ]);
    expect((await site.get("api/lock?kind=mutex&name=alive")).json).toMatchObject({
      row: { goneCount: 0 },
      holders: [{ goneSinceAtMs: null }],
    });
  } finally {
    await dying.close().catch(() => {});
  }
});

it("deadlocks are found, and shown only to viewers that may see all their locks", async () => {
  const [a, b] = [scene.another({ clientName: "a" }), scene.another({ clientName: "b" })];
  const wait = new AbortController();
  const queueUp = async (holdfast: typeof a, name: string): Promise<void> => {
    const lock = holdfast.mutex(name);
    lock.acquire({ ...LONG, waitMs: Number.POSITIVE_INFINITY, signal: wait.signal }).catch(() => {});
    await until(async () => (await lock.inspect()).waiterCount > 0, "it waits");
  };
  const orders = await a.mutex("orders").acquire({ ...LONG, label: "secret 7" });
  const stock = await b.mutex("stock").acquire(LONG);
  await queueUp(a, "stock");
  await queueUp(b, "orders");
  try {
    const site = await startConsole({ holdfast: scene.holdfast, redact: ["label"] });
    const { text, json } = await site.get("api/deadlocks");
    const { deadlocks, isComplete } = json;
    expect([deadlocks.length, isComplete]).toEqual([1, true]);
    const members = new Map<string, object>(deadlocks[0].members.map((one: { app: string }) => [one.app, one]));
    expect(members.get("a")).toMatchObject({
      holds: { name: "orders", kind: "mutex", token: orders.token },
      waits: { name: "stock", kind: "mutex", token: null },
    });
    expect(members.get("b")).toMatchObject({ holds: { name: "stock", token: stock.token }, waits: { name: "orders" } });
    expect(text).not.toContain("secret");

    const partly = await startConsole({
      holdfast: scene.holdfast,
      authorize: (_req, _action, name) => (name !== "stock" ? { who: "ana" } : false),
    });
    expect((await partly.ask("api/deadlocks")).json.deadlocks).toEqual([]);
  } finally {
    wait.abort();
    await Promise.all([orders.release(), stock.release()]);
  }
});

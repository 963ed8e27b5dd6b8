/** node-cron fires whose process crashes or freezes while it runs them. */
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import type { RunSkippedEvent } from "@holdfast/recipes";
import { readHistory } from "holdfast/admin";
import { expect, onTestFinished, test, vi } from "vitest";
import { type Program, startProgram } from "../../../tests/support/program.js";
import { eventually, useQueueScene } from "../../recipes/tests/queue-scene.js";
import { endsAtMs, serverMs } from "../../recipes/tests/takeover.js";
import { runCoordinator } from "../src/index.js";

const scene = useQueueScene();

function instance(): Program {
  const { server, name } = scene;
  const program = startProgram(new URL("./programs/cron-service.mjs", import.meta.url), { port: server.port, name });
  onTestFinished(async () => void (await program.kill()));
  return program;
}

/** Collects the pids of the holders that caused skips. */
function pidsInTheWay(): (number | undefined)[] {
  const pids: (number | undefined)[] = [];
  const listener = (message: unknown): void => {
    const { lockName, refusal } = message as RunSkippedEvent;
    if (lockName === scene.name) pids.push(refusal.holder?.pid);
  };
  subscribe("holdfast:run:skipped", listener);
  onTestFinished(() => void unsubscribe("holdfast:run:skipped", listener));
  return pids;
}

test("a fire of a killed process does not run again, and the next fire runs", async () => {
  const { redis, name, holdfast } = scene;
  const [dying, pids, coordinator] = [instance(), pidsInTheWay(), runCoordinator(holdfast, { name })];
  expect(await dying.call("shouldRun", { key: "feed:1", ttlMs: 600_000 })).toBe(true);
  await dying.kill();
  expect(await coordinator.shouldRun("feed:1", 600_000)).toBe(false);
  expect(pids).toEqual([dying.pid]);
  expect(await coordinator.shouldRun("feed:2", 600_000)).toBe(true);
  await coordinator.onComplete("feed:2");
  // The lease of the killed run expires by itself. The test does not wait for that.
  const holders = `hf:semaphore:{${name}}:holders`;
  expect(await redis.zcount(holders, "-inf", (await serverMs(redis)) * 1_000 + 20_000_000)).toBe(1);
  for (const key of await redis.keys(`hf:*{${name}*`)) expect(await redis.pttl(key), key).toBeGreaterThan(0);
});

test("a process that freezes past its fire's TTL takes nothing from the next holder", async () => {
  const { redis, name, holdfast, other } = scene;
  const late = instance();
  const key = "feed:1";
  expect(await late.call("shouldRun", { key, ttlMs: 1_000 })).toBe(true);
  const takenUntilMs = await endsAtMs(redis, `hf:mutex:{${name}/${key}}`);
  late.freeze();
  const next = runCoordinator(holdfast, { name, history: true });
  await vi.waitFor(async () => expect(await next.shouldRun(key, 600_000)).toBe(true), eventually);
  expect(await serverMs(redis)).toBeGreaterThan(takenUntilMs - 50);
  late.resume();
  await late.call("onComplete", { key });
  expect(await late.call("shouldRun", { key, ttlMs: 600_000 })).toBe(false);
  expect(await runCoordinator(other, { name }).shouldRun(key, 600_000)).toBe(false);
  await next.onComplete(key);
  await vi.waitFor(async () => {
    const runs = await readHistory(other, { name });
    expect(runs.filter(({ outcome }) => outcome === "released")).toHaveLength(2);
    expect(new Set(runs.map(({ pid }) => pid))).toEqual(new Set([late.pid, process.pid]));
  }, eventually);
});

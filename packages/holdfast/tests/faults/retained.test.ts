/** Retained locks, if their process fails or other processes have a different version. */
import { Redis } from "ioredis";
import { expect, test } from "vitest";
import { mutexAcquire } from "../../src/generated/mutex.js";
import type { Lease } from "../../src/index.js";
import { retain } from "../../src/retain/index.js";
import { BRIEF_LEASE_MS, LONG_MS, until, withLeaseInTime } from "../../src/testing/delays.js";
import { type FaultScene, ioredis, useFaultScene } from "./scene.js";

const scene = useFaultScene();

/** Longer than any test. */
const ENDLESS_MS = 600_000;

/** The worker's reply to `retain`. */
interface Retained {
  readonly owner: string;
  readonly token: number;
}

test("when a process that retains a lock is killed, a waiter gets the lock when its lease ends", async () => {
  const { server, name, keys } = scene;
  const worker = scene.worker();
  const { owner, token } = await worker.call<Retained>("retain", { name, leaseMs: ENDLESS_MS });
  await worker.kill();
  await worker.ended;
  const rival = await scene.client(ioredis);
  const next = rival.mutex(name).acquire({ waitMs: LONG_MS });
  await scene.queued(1);
  expect(await scene.holder()).toBe(owner);
  await server.command("PEXPIRE", keys.lock, 1);
  const lease = await next;
  expect(lease.token).toBeGreaterThan(token);
  await lease.release();
});

test("a process frozen beyond the lease of a lock that it retains does not reuse it", () =>
  withLeaseInTime(async (leaseMs) => {
    const { name } = scene;
    const worker = scene.worker();
    const rival = await scene.client(ioredis);
    const { owner, token } = await worker.call<Retained>("retain", { name, leaseMs });
    worker.freeze();
    const isRetained = (await scene.holder()) === owner;
    const next = await rival.mutex(name).acquire({ waitMs: LONG_MS, leaseMs: ENDLESS_MS });
    worker.resume();
    expect(next.token).toBeGreaterThan(token);
    const again = worker.call<Retained>("retain", { name, leaseMs });
    await scene.queued(1);
    expect(await scene.holder()).toBe(next.owner);
    await next.release();
    const after = await again;
    expect(after.token).toBeGreaterThan(next.token);
    expect(after.owner).not.toBe(owner);
    expect(isRetained, "the process was frozen in time").toBe(true);
  }, 4 * BRIEF_LEASE_MS));

test("a waiter whose version sends no recall gets a retained lock when the retention ends", async () => {
  const { name, server, keys } = scene;
  const recall = /local client, number = string\.match\(holder, [^\n]*\n\s*if client then\n[^\n]*'~'[^\n]*\n\s*end\n/;
  const source = mutexAcquire.source.replace(recall, "");
  expect(source).not.toBe(mutexAcquire.source);
  expect(source).not.toContain("[13579]");
  const holdfast = await scene.client(ioredis);
  const old = new Redis({ port: server.port });
  const heard: string[] = [];
  old.on("message", (_, message) => heard.push(message));
  await old.subscribe("hf:in:old-client");
  try {
    let queued: unknown;
    for (let number = 1; queued !== 0; number += 1) {
      await retained(holdfast, name, 2_000);
      const owner = `old-client/${number}/30000/32/;3000`;
      const all = [keys.lock, keys.fence, keys.queue, `${keys.lock}:handed`, `${keys.lock}:pause`];
      const asked = await server.command("EVAL", source, 5, ...all, owner, 30_000, 630_000, 32, 1, "hf:in:");
      // If the retention was over already, the old client was granted the lock. Then release it for the next try.
      queued = Array.isArray(asked) ? asked[0] : await server.command("DEL", keys.lock);
    }
    expect(heard).toEqual([]);
    await until(() => heard.length > 0, "the old client is granted the lock");
    expect(heard[0]).toMatch(/^\+\d+ \d+ \d+$/);
  } finally {
    old.disconnect();
  }
});

/** Acquires and releases until the lock is retained. */
async function retained(
  holdfast: Awaited<ReturnType<FaultScene["client"]>>,
  name: string,
  forMs: number,
): Promise<void> {
  const mutex = holdfast.mutex(name, { retain: retain({ forMs }) });
  const retaken = (): Promise<Lease> => mutex.acquire({ leaseMs: ENDLESS_MS, waitMs: LONG_MS });
  let lease = await retaken();
  await until(async () => {
    await lease.release();
    const { owner } = lease;
    lease = await retaken();
    return lease.owner === owner;
  }, "it is retained");
  await lease.release();
}

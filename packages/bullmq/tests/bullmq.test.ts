/** Jobs under locks, with the real BullMQ on a real server. */
import { DelayedError, type Job } from "bullmq";
import { AcquireTimeoutError, createHoldfast, type Lease } from "holdfast";
import { Redis } from "ioredis";
import { describe, expect, test, vi } from "vitest";
import { startProxy } from "../../../tests/support/tcp-proxy.js";
import { type Refusal, type WithLockOptions, withLock } from "../src/index.js";
import { Bench, type Bill, crowd, ended, eventually } from "./bullmq-bench.js";

const bench = new Bench();

describe("concurrency", () => {
  test("two workers run jobs with one key one at a time, and complete all of them", { timeout: 60_000 }, async () => {
    const inside = crowd();
    const done = new Set<number>();
    const refused = vi.fn();
    for (const mine of [bench.holdfast, bench.other]) {
      const processor = withLock(
        mine,
        () => bench.key,
        async (job: Job<Bill>) => {
          await inside.visit();
          done.add(job.data.n);
        },
        { whenBusy: { delayMs: 10 }, onBusy: refused },
      );
      bench.worker(processor, { concurrency: 5 });
    }
    await bench.addMany(100);
    await vi.waitFor(() => expect(done.size).toBe(100), { timeout: 50_000, interval: 20 });
    expect(inside.most).toBe(1);
    expect(refused).toHaveBeenCalled();
    await vi.waitFor(
      async () =>
        expect(await bench.queue().getJobCounts("completed", "failed")).toEqual({ completed: 100, failed: 0 }),
      eventually,
    );
  });

  test("two queues run jobs with one key one at a time", async () => {
    const inside = crowd();
    const done: string[] = [];
    const names = [bench.queueName, `refunds-${bench.queueName}`];
    for (const [at, name] of names.entries()) {
      bench.queueName = name;
      const processor = withLock(
        at === 0 ? bench.holdfast : bench.other,
        () => bench.key,
        async (job) => {
          await inside.visit();
          done.push(job.queueName);
        },
        { whenBusy: { delayMs: 10 } },
      );
      bench.worker(processor, { concurrency: 3 });
      await bench.addMany(10);
    }
    await vi.waitFor(() => expect(done).toHaveLength(20), eventually);
    expect(inside.most).toBe(1);
    expect(new Set(done)).toEqual(new Set(names));
  });

  test("a semaphore lets as many jobs run as it has permits", async () => {
    const inside = crowd();
    let done = 0;
    const processor = withLock(
      bench.holdfast,
      () => bench.key,
      async () => {
        await inside.visit(() => vi.waitFor(() => expect(inside.most).toBe(2), eventually));
        done += 1;
      },
      { whenBusy: { waitMs: Infinity }, lock: (mine, name) => mine.semaphore(name, { permits: 2 }) },
    );
    bench.worker(processor, { concurrency: 4 });
    await bench.addMany(8);
    await vi.waitFor(() => expect(done).toBe(8), eventually);
    expect(inside.most).toBe(2);
  });

  test("jobs without a key run without a lock", async () => {
    const inside = crowd();
    const leases: unknown[] = [];
    const processor = withLock(
      bench.holdfast,
      () => undefined,
      async (_job, _token, signal, lease) => {
        leases.push(lease, signal.aborted);
        await inside.visit(() => vi.waitFor(() => expect(inside.most).toBe(2), eventually));
      },
    );
    bench.worker(processor, { concurrency: 2 });
    await bench.addMany(2);
    await vi.waitFor(() => expect(leases).toEqual([undefined, false, undefined, false]), eventually);
  });
});

describe("a job whose lock is held", () => {
  test("does not occupy the worker, and `onBusy` names the holder", async () => {
    const lease = await bench.takeLock();
    const seen: Refusal[] = [];
    const keyOf = (job: Job<Bill>): string | undefined => (job.name === "bill" ? bench.key : undefined);
    const run = vi.fn(async () => {});
    bench.worker(
      withLock(bench.other, keyOf, run, { whenBusy: { delayMs: 50 }, onBusy: (refusal) => seen.push(refusal) }),
    );
    const busy = await bench.add();
    await vi.waitFor(async () => expect(seen.length).toBeGreaterThan(0), eventually);
    await bench.queue().add("other", { n: 2 });
    await vi.waitFor(() => expect(run).toHaveBeenCalledTimes(1), eventually);
    expect(seen[0]).toMatchObject({ reason: "held", label: "ana's import", holder: { pid: process.pid } });
    await lease.release();
    await vi.waitFor(() => expect(run).toHaveBeenCalledTimes(2), eventually);
    await vi.waitFor(async () => expect(await (await bench.reload(busy)).isCompleted()).toBe(true), eventually);
  });

  test("is delayed without using up an attempt", async () => {
    const lease = await bench.takeLock();
    const told: number[][] = [];
    const processor = withLock(
      bench.other,
      () => bench.key,
      async (job) => void told.push([job.attemptsMade, job.attemptsStarted]),
      {
        whenBusy: { delayMs: 5 },
        onBusy: (_, { attemptsMade, attemptsStarted }) => {
          told.push([attemptsMade, attemptsStarted]);
          if (told.length === 3) void lease.release();
        },
      },
    );
    const end = ended(bench.worker(processor));
    await bench.add({ attempts: 1 });
    const { job } = await end;
    const starts = told.length;
    expect(starts).toBeGreaterThan(3);
    expect(told).toEqual(Array.from({ length: starts }, (_, at) => [0, at + 1]));
    expect([job?.attemptsMade, job?.attemptsStarted]).toEqual([1, starts]);
  });

  test("is delayed by a random time, so that jobs do not all return together", async () => {
    const lease = await bench.takeLock();
    const delays: number[] = [];
    const processor = withLock(
      bench.other,
      () => bench.key,
      async () => {},
      { whenBusy: { delayMs: 100_000 } },
    );
    const job = {
      attemptsStarted: 1,
      attemptsMade: 0,
      queueName: "q",
      id: "1",
      moveToDelayed: async (atMs: number) => void delays.push(atMs - Date.now()),
    };
    for (let at = 0; at < 20; at += 1)
      await expect(processor(job as unknown as Job<Bill>)).rejects.toThrow(DelayedError);
    await lease.release();
    expect(Math.min(...delays)).toBeGreaterThan(45_000);
    expect(Math.max(...delays)).toBeLessThanOrEqual(150_000);
    expect(new Set(delays).size).toBeGreaterThan(10);
  });

  test("fails with the holder in its error after `delaysMax` delays", async () => {
    const lease = await bench.takeLock();
    const run = vi.fn(async () => {});
    const end = ended(
      bench.worker(withLock(bench.other, () => bench.key, run, { whenBusy: { delayMs: 5, delaysMax: 2 } })),
    );
    await bench.add();
    const { error, job } = await end;
    expect(error).toBeInstanceOf(AcquireTimeoutError);
    expect(error).toMatchObject({ holder: { label: "ana's import" }, token: lease.token });
    expect(job?.failedReason).toContain('for "ana\'s import"');
    expect((await bench.reload(job as Job<Bill>)).attemptsStarted).toBe(3);
    expect(run).not.toHaveBeenCalled();
    await lease.release();
  });

  test("gets the full number of delays again in each attempt", async () => {
    const lease = await bench.takeLock();
    const processor = withLock(
      bench.other,
      () => bench.key,
      async () => {},
      { whenBusy: { delayMs: 5, delaysMax: 1 } },
    );
    const failures: unknown[] = [];
    bench.worker(processor).on("failed", (job) => failures.push([job?.attemptsMade, job?.attemptsStarted]));
    await bench.add({ attempts: 2 });
    await vi.waitFor(() => expect(failures).toHaveLength(2), eventually);
    expect(failures).toEqual([
      [1, 2],
      [2, 4],
    ]);
    await lease.release();
  });

  test.each<[string, WithLockOptions["whenBusy"] & {}, string]>([
    ['fails immediately with `whenBusy: "fail"`', "fail", "was not acquired immediately"],
    ["fails after `waitMs` with `whenBusy: { waitMs }`", { waitMs: 30 }, "was not acquired within 30 ms"],
  ])("%s", async (_, whenBusy, message) => {
    const lease = await bench.takeLock();
    const seen = vi.fn();
    const end = ended(
      bench.worker(
        withLock(
          bench.other,
          () => bench.key,
          async () => {},
          { whenBusy, onBusy: seen },
        ),
      ),
    );
    await bench.add();
    const { error } = await end;
    expect(error).toMatchObject({ name: "AcquireTimeoutError", message: expect.stringContaining(message) });
    expect(error?.message).toContain("ana's import");
    expect(seen).toHaveBeenCalledTimes(1);
    await lease.release();
  });

  test("waits in the worker with `waitMs`, and runs when the lock is free", async () => {
    const lease = await bench.takeLock();
    const end = ended(
      bench.worker(
        withLock(
          bench.other,
          () => bench.key,
          async () => "billed",
          { whenBusy: { waitMs: Infinity } },
        ),
      ),
    );
    await bench.add();
    await vi.waitFor(
      async () => expect((await bench.holdfast.mutex(bench.key).inspect()).waiterCount).toBe(1),
      eventually,
    );
    await lease.release();
    const { value, job } = await end;
    expect([value, job?.attemptsStarted]).toEqual(["billed", 1]);
  });

  test.each<[string, string | undefined, RegExp]>([
    ["that has text", "no longer wanted", /was canceled before it acquired its lock/],
    ["without text", undefined, /aborted/],
  ])("can be canceled while it waits, with a reason %s", async (_, reason, message) => {
    const lease = await bench.takeLock();
    const run = vi.fn(async () => {});
    const waiting = bench.worker(withLock(bench.other, () => bench.key, run, { whenBusy: { waitMs: Infinity } }));
    const end = ended(waiting);
    const job = await bench.add();
    await vi.waitFor(
      async () => expect((await bench.holdfast.mutex(bench.key).inspect()).waiterCount).toBe(1),
      eventually,
    );
    waiting.cancelJob(job.id as string, reason);
    const { error } = await end;
    expect(error?.message).toMatch(message);
    if (reason !== undefined) expect(error?.cause).toBe(reason);
    await vi.waitFor(
      async () => expect((await bench.holdfast.mutex(bench.key).inspect()).waiterCount).toBe(0),
      eventually,
    );
    expect(run).not.toHaveBeenCalled();
    await lease.release();
  });

  test("fails for good if it is canceled before it is delayed", async () => {
    const lease = await bench.takeLock();
    const seen: Refusal[] = [];
    const refused = bench.worker(
      withLock(
        bench.other,
        () => bench.key,
        async () => {},
        {
          whenBusy: { delayMs: 100_000 },
          onBusy: (refusal, { id }) => {
            seen.push(refusal);
            refused.cancelJob(id as string, "no longer wanted");
          },
        },
      ),
    );
    const job = await bench.add();
    await vi.waitFor(async () => expect(await job.getState()).not.toMatch(/active|waiting/), eventually);
    expect(await job.getState()).toBe("failed");
    expect((await bench.reload(job)).failedReason).toMatch(/was canceled before it acquired its lock/);
    expect(seen).toHaveLength(1);
    await lease.release();
  });

  test("is delayed while its lock is paused, and runs after the lock is resumed", async () => {
    await bench.holdfast.pause(bench.key, { label: "year-end", by: "ana" });
    const seen: Refusal[] = [];
    const run = vi.fn(async () => {});
    bench.worker(
      withLock(bench.other, () => bench.key, run, {
        whenBusy: { delayMs: 20 },
        onBusy: (refusal) => seen.push(refusal),
      }),
    );
    await bench.add();
    await vi.waitFor(() => expect(seen[0]).toMatchObject({ reason: "paused", label: "year-end" }), eventually);
    expect(run).not.toHaveBeenCalled();
    await bench.holdfast.resume(bench.key, { by: "ana" });
    await vi.waitFor(() => expect(run).toHaveBeenCalledTimes(1), eventually);
  });

  test("is delayed while the lock server is down, and never runs without a lock", async () => {
    const proxy = await startProxy(bench.server.port);
    const client = new Redis({ port: proxy.port, retryStrategy: () => 20, maxRetriesPerRequest: 1 });
    client.on("error", () => {});
    const local = createHoldfast({ redis: client, commandTimeoutMs: 200 });
    bench.atEnd(async () => {
      await local.close();
      client.disconnect();
      await proxy.close();
    });
    proxy.refuse(true);
    proxy.cutAll();
    const seen: Refusal[] = [];
    const tokens: number[] = [];
    const run = async (
      _job: Job<Bill>,
      _token: string | undefined,
      _signal: AbortSignal,
      lease: Lease,
    ): Promise<void> => void tokens.push(lease.token);
    bench.worker(
      withLock(local, () => bench.key, run, { whenBusy: { delayMs: 50 }, onBusy: (refusal) => seen.push(refusal) }),
    );
    const job = await bench.add();
    await vi.waitFor(() => expect(seen[0]?.reason).toBe("unavailable"), eventually);
    expect(tokens).toEqual([]);
    proxy.refuse(false);
    await vi.waitFor(() => expect(tokens).toHaveLength(1), eventually);
    await vi.waitFor(async () => expect(await (await bench.reload(job)).isCompleted()).toBe(true), eventually);
    expect((await bench.reload(job)).attemptsMade).toBe(1);
  });
});

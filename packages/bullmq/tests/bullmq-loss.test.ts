/** Jobs that lose their lock or stall while they run, and BullMQ features that must keep working. */
import { FlowProducer, type Job, UnrecoverableError, WaitingChildrenError, type Worker } from "bullmq";
import { createHoldfast, type Holdfast, type Lease, LeaseLostError } from "holdfast";
import { Redis } from "ioredis";
import { describe, expect, test, vi } from "vitest";
import { startProgram } from "../../../tests/support/program.js";
import { startRedis } from "../../../tests/support/redis-server.js";
import { startProxy } from "../../../tests/support/tcp-proxy.js";
import { mutexAcquire } from "../../holdfast/src/generated/scripts.js";
import { deferred } from "../../holdfast/src/testing/delays.js";
import { hears } from "../../nestjs/tests/hears.js";
import { endsAtMs, expectTakeover, serverMs } from "../../recipes/tests/takeover.js";
import { type LockedProcessor, type Refusal, WorkLostError, withLock } from "../src/index.js";
import { Bench, type Bill, crowd, ended, eventually, held } from "./bullmq-bench.js";

const bench = new Bench();

type Run = LockedProcessor<Bill, unknown, string, string>;

/** Starts a worker whose jobs all use the key of the test. */
function lockedWorker(run: Run, options: Parameters<Bench["worker"]>[1] = {}): Worker<Bill> {
  return bench.worker(
    withLock<Bill, unknown>(bench.other, () => bench.key, run, { whenBusy: { delayMs: 20 } }),
    options,
  );
}

/** Force-releases the lock from its current holder. */
async function takeAway(): Promise<void> {
  const { holders } = await bench.holdfast.mutex(bench.key).inspect();
  const token = holders[0]?.token as number;
  await hears(bench.redis, holders[0]?.owner as string);
  await bench.holdfast.mutex(bench.key).forceRelease({ token, by: "ana", reason: "stuck" });
}

function aborted(signal: AbortSignal): Promise<unknown> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve(signal.reason);
    signal.addEventListener("abort", () => resolve(signal.reason));
  });
}

describe("a job that loses its lock", () => {
  test("is notified by its signal, and fails with the error that it throws", async () => {
    const run = lockedWorker(async (_job, _token, signal) => {
      await aborted(signal);
      throw signal.reason;
    });
    const end = ended(run);
    run.once("active", () => void vi.waitFor(takeAway, eventually));
    await bench.add();
    expect((await end).error).toMatchObject({
      name: "LeaseLostError",
      reason: "force-released",
      forced: { by: "ana" },
    });
  });

  test("fails with its value if it succeeds anyway, and is retried", async () => {
    const signals: AbortSignal[] = [];
    const run = lockedWorker(async (_job, _token, signal, lease) => {
      signals.push(signal);
      if (signals.length > 1) return `again, ${signal.aborted}`;
      await vi.waitFor(takeAway, eventually);
      await aborted(lease.signal);
      return { invoice: 7 };
    });
    const end = ended(run);
    await bench.add({ attempts: 2 });
    const { error, job } = await end;
    expect(error).toBeInstanceOf(WorkLostError);
    expect(error).toBeInstanceOf(LeaseLostError);
    expect(error).toMatchObject({ value: { invoice: 7 }, reason: "force-released" });
    expect(job?.failedReason).toContain('"ana"');
    expect((await ended(run)).value).toBe("again, false");
  });

  test("receives BullMQ's cancellation on the same signal", async () => {
    const began = deferred<void>();
    const run = lockedWorker(async (_job, _token, signal, lease) => {
      began.resolve();
      const reason = await aborted(signal);
      return [reason, lease.signal.aborted, lease.validForMs() > 0];
    });
    const end = ended(run);
    const job = await bench.add();
    await began.promise;
    expect(run.cancelJob(job.id as string, "no longer")).toBe(true);
    expect((await end).value).toEqual(["no longer", false, true]);
  });

  test("is limited by `maxHoldMs`", async () => {
    const run = async (_job: Job<Bill>, _token: unknown, signal: AbortSignal): Promise<unknown> => {
      const reason = await aborted(signal);
      throw reason;
    };
    const end = ended(bench.worker(withLock(bench.other, () => bench.key, run, { maxHoldMs: 200, leaseMs: 1_000 })));
    await bench.add();
    expect((await end).error).toMatchObject({ reason: "max-hold" });
  });
});

describe("errors in the processor", () => {
  test.each<[string, Error, number]>([
    ["UnrecoverableError", new UnrecoverableError("no such customer"), 1],
    ["a plain error", Object.assign(new Error("card refused"), { code: "E_CARD" }), 2],
  ])("%s passes through unchanged, and BullMQ handles it as usual", async (_, error, attempts) => {
    const failures: unknown[] = [];
    const run = lockedWorker(() => Promise.reject(error));
    run.on("failed", (_job, thrown) => failures.push(thrown));
    const job = await bench.add({ attempts: 2 });
    await vi.waitFor(async () => expect(await (await bench.reload(job)).isFailed()).toBe(true), eventually);
    await vi.waitFor(() => expect(failures).toHaveLength(attempts), eventually);
    for (const thrown of failures) expect(thrown).toBe(error);
    expect((await bench.holdfast.mutex(bench.key).inspect()).holders).toEqual([]);
  });

  test("a refusal of another lock inside the job fails the job and causes no delay", async () => {
    const name = `${bench.key}:inner`;
    const lease = await bench.holdfast.mutex(name).acquire();
    const onBusy = vi.fn();
    const run = (): Promise<void> => bench.other.mutex(name).run(() => {}, { waitMs: 0 });
    const end = ended(bench.worker(withLock(bench.other, () => bench.key, run, { onBusy })));
    await bench.add();
    expect((await end).error).toMatchObject({ name: "AcquireTimeoutError", lockName: name });
    expect(onBusy).not.toHaveBeenCalled();
    await lease.release();
  });
});

describe("a stalled job", () => {
  test("runs again only after the first run has ended", { timeout: 60_000 }, async () => {
    const inside = crowd();
    const first = held();
    const tokens: number[] = [];
    const refusals: Refusal[] = [];
    const run: Run = async (job, _token, _signal, lease) => {
      tokens.push(lease.token);
      await inside.visit(tokens.length === 1 ? first.work : undefined);
      return job.stalledCounter;
    };
    const processor = withLock<Bill, unknown>(bench.holdfast, () => bench.key, run);
    const errors: string[] = [];
    bench
      .worker(processor, { skipLockRenewal: true, lockDuration: 100, skipStalledCheck: true })
      .on("error", ({ message }) => errors.push(message));
    const job = await bench.add({ attempts: 1 });
    await first.began;
    const second = withLock<Bill, unknown>(bench.other, () => bench.key, run, {
      whenBusy: { delayMs: 50 },
      onBusy: (refusal) => refusals.push(refusal),
    });
    bench.worker(second, { stalledInterval: 50, maxStalledCount: 100 });
    await vi.waitFor(() => expect(refusals.length).toBeGreaterThan(1), eventually);
    expect(refusals[0]).toMatchObject({ reason: "held", label: `${bench.queueName}:${job.id}` });
    expect(tokens).toHaveLength(1);
    first.end();
    // Either worker may complete it because the first one can stall again on a slow machine.
    await vi.waitFor(async () => expect(await job.isCompleted()).toBe(true), eventually);
    expect(inside.most).toBe(1);
    expect(tokens.length).toBeGreaterThan(1);
    expect(tokens).toEqual([...new Set(tokens)].toSorted((one, other) => one - other));
    await vi.waitFor(() => expect(errors.join()).toMatch(/lock|active|state/i), eventually);
  });
});

describe("other BullMQ features", () => {
  test("a delayed job waits while its queue is paused, and holds no lock", async () => {
    const lease = await bench.takeLock();
    const refused = deferred<void>();
    const run = vi.fn(async () => "billed");
    const processor = withLock(bench.other, () => bench.key, run, {
      whenBusy: { delayMs: 20 },
      onBusy: () => refused.resolve(),
    });
    const end = ended(bench.worker(processor));
    const job = await bench.add();
    await refused.promise;
    await bench.queue().pause();
    await lease.release();
    // When the job is no longer active, none of its requests are in flight.
    await vi.waitFor(async () => expect(["delayed", "waiting", "paused"]).toContain(await job.getState()), eventually);
    const mine = await bench.holdfast.mutex(bench.key).tryAcquire();
    expect(mine).not.toBeNull();
    await mine?.release();
    expect(run).not.toHaveBeenCalled();
    await bench.queue().resume();
    expect((await end).value).toBe("billed");
  });

  test("children of a flow run one at a time, and their parent runs after them", async () => {
    const inside = crowd();
    const order: string[] = [];
    const run: Run = async (job) => {
      await inside.visit();
      order.push(job.name);
      return job.name;
    };
    bench.worker(
      withLock(bench.other, () => bench.key, run, { whenBusy: { delayMs: 10 } }),
      { concurrency: 3 },
    );
    const flows = new FlowProducer({ connection: bench.connection });
    bench.atEnd(() => flows.close());
    const { queueName } = bench;
    const children = ["a", "b", "c"].map((name) => ({ name, queueName, data: { n: 1 } }));
    const flow = await flows.add({ name: "sum", queueName, data: { n: 0 }, children });
    await vi.waitFor(async () => expect(await flow.job.isCompleted()).toBe(true), eventually);
    expect(inside.most).toBe(1);
    expect(order.slice(0, 3).sort()).toEqual(["a", "b", "c"]);
    expect(order[3]).toBe("sum");
  });

  test("a parent that waits for its children releases its lock to them", async () => {
    const order: string[] = [];
    const run: Run = async (job, token) => {
      order.push(job.name);
      if (job.name !== "parent" || order.length > 1) return order.length;
      const parent = { id: job.id as string, queue: job.queueQualifiedName };
      await bench.queue().add("child", { n: 1 }, { parent });
      if (await job.moveToWaitingChildren(token as string)) throw new WaitingChildrenError();
      return 0;
    };
    lockedWorker(run);
    const job = await bench.queue().add("parent", { n: 0 });
    await vi.waitFor(async () => expect(await job.isCompleted()).toBe(true), eventually);
    expect(order).toEqual(["parent", "child", "parent"]);
    expect((await bench.reload(job)).attemptsMade).toBe(1);
  });
});

describe("processes that crash or freeze", { timeout: 60_000 }, () => {
  const url = new URL("./programs/bullmq-worker.mjs", import.meta.url);

  test("the next job runs when the lease of a killed worker ends", async () => {
    const dying = startProgram(url, { port: bench.server.port });
    const began = dying.heard("began");
    await dying.call("work", { queueName: bench.queueName, key: bench.key, leaseMs: 1_000 });
    await bench.add();
    await began;
    await dying.kill();
    const leaseMs = await endsAtMs(bench.redis, `hf:mutex:{${bench.key}}`);
    const end = ended(lockedWorker(async (_job, _token, _signal, { token }) => token, { stalledInterval: 100 }));
    await bench.queue().add("next", { n: 2 });
    const askedMs = await serverMs(bench.redis);
    expectTakeover((await end).value as number, { leaseMs, askedMs });
  });

  test("a worker that freezes past its lease fails with WorkLostError", async () => {
    const late = startProgram(url, { port: bench.server.port });
    try {
      const began = late.heard("began");
      await late.call("work", { queueName: bench.queueName, key: bench.key, leaseMs: 500 });
      await bench.add();
      await began;
      late.freeze();
      const lease = await bench.other.mutex(bench.key).acquire({ waitMs: 60_000 });
      late.resume();
      expect(await late.call("finish")).toMatchObject({ error: "WorkLostError", value: "late" });
      expect(lease.validForMs()).toBeGreaterThan(0);
      await lease.release();
    } finally {
      await late.kill();
    }
  });
});

test("a job whose acquire reply is lost runs once and leaves nothing behind", async () => {
  const proxy = await startProxy(bench.server.port);
  const client = new Redis({ port: proxy.port, retryStrategy: () => 20 });
  client.on("error", () => {});
  const local = createHoldfast({ redis: client });
  await local.mutex(`${bench.key}:warm`).run(() => {});
  const struck = proxy.cutBeforeReply(new RegExp(`^evalsha ${mutexAcquire.sha1}`, "i"));
  const run = vi.fn(async (_job: Job<Bill>, _token: unknown, signal: AbortSignal, _lease: Lease) => signal.aborted);
  const end = ended(bench.worker(withLock(local, () => bench.key, run)));
  await bench.add();
  expect((await end).value).toBe(false);
  await struck;
  expect(run).toHaveBeenCalledTimes(1);
  expect((await bench.other.mutex(bench.key).inspect()).holders).toEqual([]);
  for (const key of await bench.redis.keys("hf:*")) expect(await bench.redis.pttl(key), key).toBeGreaterThan(0);
  await local.close();
  client.disconnect();
  await proxy.close();
});

/** Creates a Holdfast with its own connection to that port. */
function holdfastOn(port: number): Holdfast {
  const client = new Redis({ port, retryStrategy: () => 20 });
  client.on("error", () => {});
  const made = createHoldfast({ redis: client });
  bench.atEnd(async () => {
    await made.close();
    client.disconnect();
  });
  return made;
}

test("a waiting job whose notification is lost still gets its lock", async () => {
  const proxy = await startProxy(bench.server.port);
  bench.atEnd(() => proxy.close());
  const far = holdfastOn(proxy.port);
  const lease = await bench.takeLock();
  const options = { whenBusy: { waitMs: 600_000 } };
  const end = ended(
    bench.worker(
      withLock(
        far,
        () => bench.key,
        async () => "billed",
        options,
      ),
    ),
  );
  await bench.add();
  const lock = bench.holdfast.mutex(bench.key);
  await vi.waitFor(async () => expect((await lock.inspect()).waiterCount).toBe(1), eventually);
  proxy.dropMessages(true);
  await lease.release();
  expect((await end).value).toBe("billed");
  await vi.waitFor(() => expect(proxy.counts.droppedMessages).toBeGreaterThan(0), eventually);
  expect((await lock.inspect()).holders).toEqual([]);
});

test("a job fails with its value and is retried if the lock server restarts empty", async () => {
  const server = await startRedis();
  bench.atEnd(() => server.stop());
  const first = deferred<void>();
  let runs = 0;
  const run: Run = async (_job, _token, signal) => {
    runs += 1;
    if (runs > 1) return `again, ${signal.aborted}`;
    first.resolve();
    await aborted(signal);
    return { invoice: 7 };
  };
  // The jobs are on a different server from the locks.
  const options = { leaseMs: 1_000, whenBusy: { waitMs: 600_000 } };
  const worker = bench.worker(withLock<Bill, unknown>(holdfastOn(server.port), () => bench.key, run, options));
  const end = ended(worker);
  await bench.add({ attempts: 2 });
  await first.promise;
  await server.kill();
  await server.restart();
  const { error } = await end;
  expect(error).toBeInstanceOf(WorkLostError);
  expect(error).toMatchObject({ value: { invoice: 7 } });
  expect((await ended(worker)).value).toBe("again, false");
  expect(runs).toBe(2);
});

describe("withLock refuses", () => {
  const run = async (): Promise<void> => {};

  test.each<[string, unknown]>([
    ["a path", "./processor.js"],
    ["a URL", new URL("file:///processor.js")],
    ["missing", undefined],
  ])("a processor that is %s is refused", (_, processor) => {
    expect(() => withLock(bench.holdfast, () => "a", processor as typeof run)).toThrow(
      /processor must be a function: a sandboxed processor runs in a separate process/,
    );
  });

  test.each<[object, string]>([
    [{ whenBusy: "wait" }, "whenBusy"],
    [{ whenBusy: {} }, "whenBusy"],
    [{ whenBusy: { delayMs: 0 } }, "whenBusy.delayMs"],
    [{ whenBusy: { delayMs: 1, delaysMax: -1 } }, "whenBusy.delaysMax"],
    [{ whenBusy: { delayMs: 1, jitter: 1 } }, "jitter"],
    [{ whenBusy: { waitMs: -1 } }, "waitMs"],
    [{ leaseMs: 99 }, "leaseMs"],
    [{ maxHoldMs: 1 }, "maxHoldMs"],
    [{ label: 7 }, "label"],
    [{ lock: "mutex" }, "lock"],
    [{ onBusy: 1 }, "onBusy"],
    [{ waitMs: 5 }, "waitMs"],
  ])("an invalid option, and names it: %o", (options, name) => {
    expect(() => withLock(bench.holdfast, () => "a", run, options)).toThrow(name);
  });

  test("a wrong `holdfast` argument, and a key that is not a function", () => {
    expect(() => withLock({} as never, () => "a", run)).toThrow("holdfast must be the result of createHoldfast");
    expect(() => withLock(bench.holdfast, "a" as never, run)).toThrow("keyOf must be a function");
  });
});

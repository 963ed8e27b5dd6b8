/** BullMQ jobs and node-cron fires while the servers of the locks fail. */
import { randomUUID } from "node:crypto";
import { runCoordinator } from "@holdfast/node-cron";
import { createHoldfast, type Holdfast, type Lease, type LeaseLostError } from "holdfast";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { failingServers } from "../../recipes/tests/failing-servers.js";
import { held } from "../../recipes/tests/queue-scene.js";
import { withLock } from "../src/index.js";
import { Bench, type Bill, ended, eventually } from "./bullmq-bench.js";

/** This server stores only the jobs, not the locks. */
const bench = new Bench();
/**
 * Longer than any outage here, because a waiter without a reply for a full lease gives up.
 * As the longest lease, it is also how long a promoted server grants nothing.
 */
const leaseMs = 15_000;

describe.each(failingServers)("$name", { timeout: 240_000 }, (servers) => {
  beforeAll(() => servers.start(), 60_000);
  afterAll(() => servers.stop());

  function client(): Holdfast {
    const redis = servers.client();
    redis.on("error", () => {});
    const holdfast = createHoldfast({ redis, ...servers.options });
    bench.atEnd(async () => {
      await holdfast.close();
      redis.disconnect();
    });
    return holdfast;
  }

  test("BullMQ: jobs with one key run one at a time, and a job that loses its lock fails", async () => {
    const began = held<string>();
    const inside = new Set<Lease>();
    const run =
      (work: () => Promise<string>) =>
      async (_job: unknown, _token: unknown, _signal: unknown, lease: Lease): Promise<string> => {
        // A job whose lease is no longer valid may overlap with the next one.
        expect([...inside].filter((other) => other.validForMs() > 0)).toEqual([]);
        inside.add(lease);
        const value = await work();
        inside.delete(lease);
        return value;
      };
    const options = { leaseMs, whenBusy: { waitMs: 600_000 } };
    const worker = (work: () => Promise<string>, holdfast: Holdfast): ReturnType<typeof bench.worker> =>
      bench.worker(
        withLock<Bill, string>(holdfast, () => bench.key, run(work), options),
        { autorun: false },
      );
    const second = client();
    await second.mutex(bench.key).run(() => {}, { leaseMs, waitMs: 120_000 });
    const [one, other] = [worker(began.work, client()), worker(async () => "second", second)];
    const ends = [ended(one), ended(other)];
    await bench.add();
    void one.run();
    await began.began;
    await bench.add();
    void other.run();
    const lock = second.mutex(bench.key);
    await vi.waitFor(async () => expect((await lock.inspect()).waiterCount).toBe(1), eventually);
    await servers.fail();
    began.end("first");
    const [first, next] = await Promise.all(ends);
    expect(next?.value).toBe("second");
    if (first?.error !== undefined) expect(first.error as LeaseLostError).toMatchObject({ name: "WorkLostError" });
    else expect(first?.value).toBe("first");
  });

  test("node-cron: the coordinator never throws, and one instance runs the next fire", async () => {
    const name = randomUUID();
    const coordinators = [client(), client()].map((holdfast) => runCoordinator(holdfast, { name }));
    const ask = async (key: string): Promise<boolean[]> =>
      await Promise.all(coordinators.map((coordinator) => coordinator.shouldRun(key, leaseMs)));
    let fire = 0;
    const fireUntilOneRuns = async (): Promise<void> =>
      await vi.waitFor(
        async () => {
          fire += 1;
          expect((await ask(`feed:${fire}`)).filter(Boolean)).toEqual([true]);
        },
        { timeout: 100_000, interval: 100 },
      );
    await fireUntilOneRuns();
    await servers.fail();
    for (const coordinator of coordinators) await coordinator.onComplete(`feed:${fire}`);
    await fireUntilOneRuns();
    const counts = coordinators.map((coordinator) => coordinator.counts);
    expect(counts.reduce((sum, { started }) => sum + started, 0)).toBe(2);
    const reasons = counts.flatMap(({ skipped }) => Object.entries(skipped)).filter(([, count]) => count > 0);
    for (const [reason] of reasons) expect(["already-done", "grace", "unavailable"]).toContain(reason);
  });
});

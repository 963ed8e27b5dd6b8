/** Recipes that write under a lease which a failover has lost: the lease is restored, and the write succeeds. */

import { serverTimeMs, startOfPeriod } from "holdfast/period-marker";
import { describe, expect, test } from "vitest";
import { deferred, LONG_MS, until } from "../../holdfast/src/testing/delays.js";
import { useFailoverScene } from "../../holdfast/tests/failover/failover-scene.js";
import { ioredis, nodeRedis, outcomeOf } from "../../holdfast/tests/faults/scene.js";
import { coalesce, inspectOnce, keyed, OnceLostError, once, workerSlot } from "../src/index.js";

const leaseMs = LONG_MS;

describe.each([ioredis, nodeRedis])("after a lossy failover, with $name:", { timeout: 150_000 }, (library) => {
  const scene = useFailoverScene();

  test("a once() call that ends is recorded with its value", async () => {
    const { name } = scene;
    const holdfast = await scene.client(library);
    await scene.cutReplication();
    const work = async (): Promise<string> => {
      await scene.failOver();
      return "found";
    };
    const { value, token } = await once(holdfast, name, work, { leaseMs });
    expect(value).toBe("found");
    expect(await inspectOnce(await scene.client(library), name)).toMatchObject({ state: "done", attempt: 1, token });
  });

  test("a second attempt of a once() call stays the second and keeps its saved data", async () => {
    const { name } = scene;
    const holdfast = await scene.client(library);
    const given = { leaseMs, fingerprint: "the same", after: () => "release" as const };
    const first = await once(holdfast, name, async (lease) => lease.save("first"), given);
    await scene.cutReplication();
    const work = async (lease: { save(data: unknown): Promise<void>; saved: unknown }): Promise<unknown> => {
      await lease.save("second");
      await scene.failOver();
      // The first request to the new server.
      await lease.save("third");
      return lease.saved;
    };
    const { value, token, attempt, firstAtMs } = await once(holdfast, name, work, { ...given, after: () => "block" });
    expect({ value, attempt }).toEqual({ value: "first", attempt: 2 });
    expect(firstAtMs).toBe(first.firstAtMs);
    expect(await inspectOnce(holdfast, name)).toMatchObject({ state: "blocked", attempt: 2, token, firstAtMs });
    const [record] = (await scene.replica.command("KEYS", "hf:once:*")) as string[];
    expect(await scene.replica.command("HGET", record ?? "", "saved")).toBe('"third"');
  });

  test.each([
    { what: "another attempt has followed", state: "running", later: 1 },
    { what: "has since been resolved", state: "done", later: -1 },
  ])("a call that $what does not overwrite the newer record", async ({ state, later }) => {
    const { name, master, replica } = scene;
    const holdfast = await scene.client(library);
    await scene.cutReplication();
    const work = async ({ token }: { token: number }): Promise<void> => {
      const [record = ""] = (await master.command("KEYS", "hf:once:*")) as string[];
      const fields = (await master.command("HGETALL", record)) as string[];
      await replica.command("REPLICAOF", "NO", "ONE");
      const changed = ["state", state, "owner", "another", "token", String(token + later), "value", '"other"'];
      await replica.command("HSET", record, ...fields, ...changed);
      await scene.failOver();
    };
    const { error } = await outcomeOf(once(holdfast, name, work, { leaseMs }));
    expect(error).toBeInstanceOf(OnceLostError);
    expect(await inspectOnce(holdfast, name)).toMatchObject({ state });
  });

  test("an event applied in a keyed run is recorded", async () => {
    const holdfast = await scene.client(library);
    await scene.cutReplication();
    const result = await keyed(holdfast, "events").run(scene.name, () => scene.failOver(), {
      leaseMs,
      eventId: "one",
    });
    expect(result).toMatchObject({ outcome: "ran" });
    expect(await scene.replica.command("KEYS", "hf:keyed:*:event:one")).toHaveLength(1);
  });

  test("a period is started and recorded under a mutex or a permit", async () => {
    const { name } = scene;
    const holdfast = await scene.client(library);
    const readAtMs = await serverTimeMs(holdfast, name);
    await scene.cutReplication();
    const unrenewed = { leaseMs, renew: false };
    const leases = [
      await holdfast.mutex(`${name}:mutex`).acquire(unrenewed),
      await holdfast.semaphore(`${name}:permits`, { permits: 2 }).acquire(unrenewed),
    ];
    await scene.failOver();
    for (const lease of leases) {
      const start = await startOfPeriod(holdfast, lease, { every: "day", readAtMs });
      expect(start.outcome).toBe("started");
      expect(await startOfPeriod(holdfast, lease, { every: "day", readAtMs })).toMatchObject({ outcome: "started" });
      expect(await lease.release()).toBe("released");
    }
  });

  test("a coalesced run continues, and a caller that joined it gets its value", async () => {
    const { name, master, replica } = scene;
    const [one, two, three] = await Promise.all([scene.client(library), scene.client(library), scene.client(library)]);
    const before = deferred<void>();
    const first = coalesce(one, name, () => before.promise, { mode: "join", leaseMs: 5_000 });
    await until(async () => (await master.command("GET", `hf:coalesce:{${name}}`)) !== null, "the first run");
    await scene.cutReplication();
    const work = async (lease: { assertHeld(): void }): Promise<string> => {
      await scene.failOver();
      await until(
        async () => (await replica.command("HGET", `hf:coalesce:{${name}}:run`, "back")) !== null,
        "the run to be back",
      );
      lease.assertHeld();
      return "found";
    };
    const waiting = (count: number): Promise<void> =>
      until(async () => (await master.command("ZCARD", `hf:coalesce:{${name}}:joining`)) === count, "waiters");
    const runs = coalesce(two, name, work, { mode: "join", leaseMs: 5_000 });
    await waiting(1);
    const joins = coalesce(three, name, () => "by itself", { mode: "join", leaseMs: 5_000 });
    await waiting(2);
    before.resolve();
    expect(await first).toMatchObject({ outcome: "ran" });
    expect(await runs).toEqual({ outcome: "ran", value: "found" });
    expect(await joins).toEqual({ outcome: "joined", value: "found" });
  });

  test("the newest of coalesced calls runs after a restored run, not beside it", async () => {
    const { name, replica } = scene;
    const [one, two] = await Promise.all([scene.client(library), scene.client(library)]);
    await scene.cutReplication();
    let isRunning = false;
    const work = async (): Promise<void> => {
      isRunning = true;
      await scene.failOver();
      const hasAsked = async () => (await replica.command("ZCARD", `hf:coalesce:{${name}}:waiting`)) === 1;
      await until(hasAsked, "the other call to ask where the grace is over");
      isRunning = false;
    };
    const first = coalesce(one, name, work, { leaseMs: 5_000 });
    await until(() => isRunning, "the first run");
    const second = coalesce(two, name, () => isRunning, { leaseMs: 5_000 });
    expect(await first).toMatchObject({ outcome: "ran" });
    expect(await second).toEqual({ outcome: "ran", value: false });
  });

  test("a worker's number is restored together with the note of when it expires", async () => {
    const { name, replica } = scene;
    const holdfast = await scene.client(library);
    await scene.cutReplication();
    // The regular renewal is far off, so only the one after the reconnect restores the number.
    const slot = await workerSlot(holdfast, name, { count: 2, leaseMs: 40 * leaseMs });
    await scene.failOver();
    const holders = `hf:semaphore:{${name}}:holders`;
    await until(async () => (await replica.command("ZSCORE", holders, slot.owner)) !== null, "the number back");
    await until(async () => (await replica.command("HLEN", `hf:worker-slot:{${name}}`)) === 1, "the note back");
    expect(await slot.release()).toBe("released");
  });
});

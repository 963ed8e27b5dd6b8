/** A master that crashes with unreplicated grants: a lock that is still held must not be granted again. */
import { describe, expect, test } from "vitest";
import { StoreError } from "../../src/index.js";
import { LONG_MS, sleep } from "../../src/testing/delays.js";
import { glide, ioredis, nodeRedis, outcomeOf } from "../faults/scene.js";
import { useFailoverScene } from "./failover-scene.js";

const scene = useFailoverScene();
const LEASE_MS = 3_000;

describe.each([ioredis, nodeRedis, glide])("$name", (library) => {
  test("a holder whose grant was lost in a failover keeps its lock, and waiters are granted afterwards", async () => {
    const { name } = scene;
    const [first, second] = [await scene.client(library), await scene.client(library)];
    // The first use writes the marker, and the replica receives it.
    await first.mutex(`warm:${name}`).run(() => {}, { leaseMs: LEASE_MS });
    await scene.cutReplication();
    const lease = await first.mutex(name).acquire({ leaseMs: LEASE_MS });
    expect(await scene.replica.command("EXISTS", `hf:mutex:{${name}}`), "the replica has not got it").toBe(0);
    await scene.failOver();

    const waiting = outcomeOf(second.mutex(name).acquire({ leaseMs: LEASE_MS, waitMs: LONG_MS * 4 }));
    await sleep(LEASE_MS * 1.2);
    expect(lease.validForMs(), "renewed on the new server").toBeGreaterThan(0);
    expect(await scene.replica.command("GET", `hf:mutex:{${name}}`)).toBe(lease.owner);
    expect(await lease.release()).toBe("released");
    const { value: next, error } = await waiting;
    expect(error).toBeUndefined();
    expect(next?.token).toBeGreaterThan(lease.token);
    expect(await next?.release()).toBe("released");
  });
});

test("with failoverGrace off, the same failover grants the lock twice", async () => {
  const { name } = scene;
  const [first, second] = [
    await scene.client(ioredis, { failoverGrace: "off" }),
    await scene.client(ioredis, { failoverGrace: "off" }),
  ];
  await first.mutex(`warm:${name}`).run(() => {}, { leaseMs: LEASE_MS });
  await scene.cutReplication();
  const lease = await first.mutex(name).acquire({ leaseMs: LONG_MS * 4, renew: false });
  await scene.failOver();
  const other = await second.mutex(name).acquire({ leaseMs: LEASE_MS, waitMs: LONG_MS });
  expect(lease.validForMs(), "two hold it").toBeGreaterThan(0);
  expect(other.validForMs()).toBeGreaterThan(0);
});

test("a caller that times out during the quiet time learns when the server may grant again", async () => {
  const { name } = scene;
  const holdfast = await scene.client(ioredis);
  await holdfast.mutex(`warm:${name}`).run(() => {}, { leaseMs: LONG_MS * 4 });
  await scene.cutReplication();
  await scene.failOver();
  const { error } = await outcomeOf(holdfast.mutex(name).acquire({ waitMs: 2_000 }));
  expect(error).toBeInstanceOf(StoreError);
  expect(error).toMatchObject({ transient: true, mayHaveRun: false });
  expect((error as StoreError).resumesInMs).toBeGreaterThan(0);
  expect((error as StoreError).resumesInMs).toBeLessThanOrEqual(LONG_MS * 4);
  expect(String(error)).toMatch(/took over from another or was restarted.*grants no locks for another \d+ ms/);
  await expect(holdfast.mutex(name).tryAcquire(), "who does not wait cannot know either").rejects.toBeInstanceOf(
    StoreError,
  );
});

/** Stores on which a grant counts only once it is confirmed, for example by replicas. On a manual clock. */
import { beforeEach, expect, test } from "vitest";
import { adopt } from "../../src/core/acquire.js";
import { StoreError } from "../../src/core/errors.js";
import { Lease } from "../../src/core/lease.js";
import type { AcquireReply } from "../../src/core/protocol.js";
import { Answer, ScriptedLock, watch } from "./scripted-lock.js";

const LEASE_MS = 1_000;
let world: ScriptedLock;
/** The result of the confirmation, settled by the test. */
let confirmation: Answer<"extended">;

beforeEach(() => {
  world = new ScriptedLock({ commandTimeoutMs: 10 * LEASE_MS });
  confirmation = new Answer();
  Object.assign(world.protocol, { confirm: () => confirmation.promise });
});

test("a grant whose confirmation takes longer than the lease is released", async () => {
  const acquiring = watch(world.lock.acquire({ leaseMs: LEASE_MS }));
  await world.runtime.advance(LEASE_MS);
  confirmation.resolve("extended");
  await world.runtime.advance(0);
  expect(acquiring.error).toBeInstanceOf(StoreError);
  expect(acquiring.error).toMatchObject({ mayHaveRun: true, transient: true });
  expect(world.sentOf("leave")).toHaveLength(1);
});

test("a lease starts with its confirmation", async () => {
  const granted = new Answer<AcquireReply>();
  world.answers.acquire = () => granted.promise;
  const acquiring = world.lock.acquire({ leaseMs: LEASE_MS, renew: false });
  await world.runtime.advance(LEASE_MS / 2);
  granted.resolve({ outcome: "granted", token: 7 });
  await world.runtime.advance(0);
  confirmation.resolve("extended");
  expect((await acquiring).validForMs()).toBe(LEASE_MS - 12);
});

test("an adopted lease starts with its adoption, and a reply after its end is an error", async () => {
  const exported = (await new ScriptedLock().lock.acquire({ leaseMs: LEASE_MS })).export();
  for (const isConfirmed of [false, true]) {
    world = new ScriptedLock({ commandTimeoutMs: 10 * LEASE_MS });
    if (isConfirmed) Object.assign(world.store, { confirmsGrants: true });
    const { runtime, answers } = world;
    // The request is sent once more.
    const late = <Reply>(reply: Reply): Promise<Reply> =>
      new Promise((resolve) => runtime.startTimer(() => resolve(reply), LEASE_MS, true));
    if (isConfirmed) answers.extend = () => late("extended");
    else answers.adopt = () => late("adopted");
    const adopting = watch(adopt(world.session, world.protocol, exported, (hold) => new Lease(hold)));
    await runtime.advance(2 * LEASE_MS);
    expect(adopting.error).toBeInstanceOf(StoreError);
    expect(adopting.error).toMatchObject({ mayHaveRun: true, transient: true });
    expect(world.sentOf("leave")).toHaveLength(1);
  }
});

/** How an acquire, a run and an adoption can end with a scripted server. */
import { beforeEach, describe, expect, test } from "vitest";
import { adopt } from "../../src/core/acquire.js";
import type { CloseOutcome } from "../../src/core/closing.js";
import { AcquireTimeoutError, LeaseLostError, LockError, PausedError, StoreError } from "../../src/core/errors.js";
import { Lease } from "../../src/core/lease.js";
import { lost, NOBODY, ScriptedLock, watch } from "./scripted-lock.js";

const LEASE_MS = 5_000;
const HELD = {
  ...NOBODY,
  holders: [{ owner: "other/3/30000/1/backup", token: 7, leaseLeftMs: 400 }],
  waiterCount: 2,
};

let world: ScriptedLock;
beforeEach(() => {
  world = new ScriptedLock();
});

describe("an acquire that does not wait for a held lock", () => {
  beforeEach(() => {
    world.answers.acquire = async () => ({ outcome: "refused", restMs: 400, nowUs: 1 });
  });

  test("reports the holder and the number of waiters", async () => {
    world.answers.inspect = async () => HELD;
    const error = await world.lock.acquire({ waitMs: 0 }).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(AcquireTimeoutError);
    expect(error).toMatchObject({ holder: { label: "backup", token: 7 }, isOwn: false, waitersAhead: 2 });
  });

  test("reports why the holder is unknown", async () => {
    const cause = lost();
    world.answers.inspect = () => Promise.reject(cause);
    const error = await world.lock.acquire({ waitMs: 0 }).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(AcquireTimeoutError);
    expect(error).toMatchObject({ holder: undefined, cause });
  });

  test.each([false, true])("reports the pause, unless it waits through pauses (%s)", async (throughPause) => {
    const untilAtMs = world.runtime.wallMs() + 60_000;
    const pause = { owner: "pause", label: "why", by: "ops", sinceAtMs: 1, untilAtMs };
    world.answers.inspect = async () => ({ ...HELD, pause }) as never;
    const error = await world.lock.acquire({ waitMs: 0, throughPause }).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(throughPause ? AcquireTimeoutError : PausedError);
  });

  test("recognizes a holder of the same Holdfast", async () => {
    const mine = new ScriptedLock();
    const lease = await mine.lock.acquire();
    mine.answers.acquire = world.answers.acquire;
    mine.answers.inspect = async () => ({
      ...HELD,
      holders: [{ owner: lease.owner, token: 7, leaseLeftMs: 400 }],
    });
    await expect(mine.lock.acquire({ waitMs: 0 })).rejects.toMatchObject({ isOwn: true });
  });
});

describe("work under a lease", () => {
  const run = <Result>(work: () => Result | Promise<Result>): Promise<Result> =>
    world.lock.run(work, { leaseMs: LEASE_MS, renew: false });

  test("must be a function; otherwise nothing is sent", async () => {
    await expect(run("work" as never)).rejects.toThrow("work must be a function; got string");
    expect(world.sent).toEqual([]);
  });

  test("succeeds even if the release gets no reply, provided the lease was valid", async () => {
    world.answers.release = () => Promise.reject(lost());
    const running = watch(run(() => "done"));
    await world.runtime.advance(2 * LEASE_MS);
    expect(running).toMatchObject({ state: "fulfilled", value: "done" });
  });

  test("fails if the lease expired and another client may have been granted the lock", async () => {
    world.answers.extend = () => Promise.reject(lost());
    const running = watch(
      run(() => {
        world.runtime.block(2 * LEASE_MS);
        return "done";
      }),
    );
    await world.runtime.advance(2 * LEASE_MS);
    expect(running.error).toBeInstanceOf(LockError);
  });

  test("fails if another client was granted the lock during the work", async () => {
    world.answers.release = async () => "claimed";
    await expect(run(() => "done")).rejects.toBeInstanceOf(LeaseLostError);
  });

  test("that throws rejects with its own error, whatever the outcome of the release", async () => {
    world.answers.release = async () => "claimed";
    const mine = new Error("mine");
    await expect(run(() => Promise.reject(mine))).rejects.toBe(mine);
    expect(world.sentOf("release")).not.toEqual([]);
  });
});

describe("an adoption", () => {
  const adopting = (): Promise<Lease> => {
    const exported = { owner: "a/1/5000/32/import", token: 7, reservedTo: 38, leaseMs: LEASE_MS, renew: false };
    return adopt(world.session, world.protocol, { ...exported, name: "scripted", kind: "mutex" } as never, (hold) => {
      return new Lease(hold);
    });
  };

  test("keeps the token, label and reserved tokens of the lease", async () => {
    expect(await adopting()).toMatchObject({ token: 7 });
    expect(world.sentOf("adopt")[0]?.claim?.owner).toMatch(/\/5000\/32\/import$/);
  });

  test.each([
    ["forgotten", "server-lost"],
    ["claimed", "expired"],
    ["unclaimed", "expired"],
  ] as const)("of a lease that is %s fails with reason %s", async (outcome, reason) => {
    world.answers.adopt = async () => outcome;
    const error = await adopting().catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(LeaseLostError);
    expect(error).toMatchObject({ reason, token: 7, owner: "a/1/5000/32/import" });
  });

  test.each([
    ["an adopter", "b/2/5000/32/import", 7, "handed-over", "it was already adopted and is still held."],
    ["a later holder", "b/2/5000/1", 39, "expired", "it was adopted, released or not renewed in time, so the lock may"],
    [
      "a client of another library",
      "worker-3",
      7,
      "expired",
      "it was adopted, released or not renewed in time, so the lock may",
    ],
  ])("of a lock that is held by %s names the reason", async (_, owner, token, reason, why) => {
    world.answers.adopt = async () => "claimed";
    world.answers.inspect = async () => ({ ...NOBODY, holders: [{ owner, token, leaseLeftMs: 400 }] });
    await expect(adopting()).rejects.toMatchObject({ reason, message: expect.stringContaining(why) });
  });

  test("does not guess the reason if the lock cannot be inspected", async () => {
    world.answers.adopt = async () => "claimed";
    world.answers.inspect = () => Promise.reject(lost());
    const message = expect.stringContaining("it was adopted, released or not renewed in time, so the lock may");
    await expect(adopting()).rejects.toMatchObject({ reason: "expired", message });
  });

  test("continues with the time that was left of maxHoldMs at the export", async () => {
    const exporting = world.lock.acquire({ leaseMs: 60_000, maxHoldMs: 1_000 });
    await world.runtime.advance(400);
    const exported = (await exporting).export();
    expect(exported.maxHoldMs).toBe(600);
    await world.runtime.advance(5_000);
    const lease = await adopt(world.session, world.protocol, exported, (hold) => new Lease(hold));
    await world.runtime.advance(590);
    expect(lease.signal.aborted).toBe(false);
    await world.runtime.advance(20);
    expect(lease.signal.reason).toMatchObject({ reason: "max-hold" });
  });

  test("without a reply is retried once with the same claim, then undone by a leave request", async () => {
    world.answers.adopt = () => Promise.reject(lost());
    await expect(adopting()).rejects.toBeInstanceOf(StoreError);
    const numbers = world.sentOf("adopt").map(({ claim }) => claim?.number);
    expect(numbers).toHaveLength(2);
    expect(new Set(numbers).size).toBe(1);
    expect(world.sentOf("leave")).toHaveLength(1);
  });

  test("is released if the Holdfast closes meanwhile", async () => {
    let closing: Promise<unknown> = Promise.resolve();
    world.answers.adopt = async () => {
      closing = world.session.close();
      return "adopted";
    };
    await expect(adopting()).rejects.toMatchObject({ code: "ERR_LOCK_CLOSED" });
    await closing;
    expect(world.sentOf("leave")).toHaveLength(1);
  });

  test("is released if a close with a grace begins, which does not wait for it", async () => {
    const other = await world.lock.acquire();
    let closing: Promise<CloseOutcome> | undefined;
    world.answers.adopt = async () => {
      closing = world.session.close(60_000);
      return "adopted";
    };
    await expect(adopting()).rejects.toMatchObject({ code: "ERR_LOCK_CLOSED" });
    expect(world.sentOf("leave")).toHaveLength(1);
    expect(world.session.held()).toMatchObject([{ owner: other.owner }]);
    await other.release();
    expect(await closing).toMatchObject({ released: [{ owner: other.owner }], unsettled: [] });
  });
});

/** Close with a grace period on a manual clock, step by step, and the outcome that it returns. */
import { beforeEach, describe, expect, test } from "vitest";
import { ClosedError, LeaseLostError } from "../../src/core/errors.js";
import type { Lease } from "../../src/core/lease.js";
import { settle } from "./manual-runtime.js";
import { Answer, lost, NOW_US, never, ScriptedLock, watch } from "./scripted-lock.js";

const GRACE_MS = 60_000;
const TRUSTED_MS = 29_698;

let world: ScriptedLock;
beforeEach(() => {
  world = new ScriptedLock();
  let token = 0;
  world.answers.acquire = async () => {
    token += 1;
    return { outcome: "granted", token };
  };
});

function reasonOf(lease: Lease): unknown {
  return lease.signal.aborted ? (lease.signal.reason as LeaseLostError).reason : "held";
}

/** The tokens that identify the leases of an outcome. */
function tokensOf(outcome: Awaited<ReturnType<typeof world.session.close>> | undefined): Record<string, number[]> {
  const tokens = (leases: readonly { readonly token: number }[] = []): number[] => leases.map(({ token }) => token);
  return { released: tokens(outcome?.released), unsettled: tokens(outcome?.unsettled) };
}

describe("the list of held leases", () => {
  test("contains the owner, label, start and validity of each lease", async () => {
    expect(world.session.held()).toEqual([]);
    const lease = await world.lock.acquire({ label: "nightly run", leaseMs: 30_000 });
    const acquiredAt = new Date(world.runtime.wallMs());
    await world.runtime.advance(4_000);
    const { owner } = lease;
    const validForMs = TRUSTED_MS - 4_000;
    expect(world.session.held()).toEqual([
      { kind: "mutex", name: "scripted", token: 1, owner, label: "nightly run", acquiredAt, validForMs },
    ]);
  });

  test("contains no waiters, no released leases and no expired leases", async () => {
    const late = await world.lock.acquire({ renew: false, leaseMs: 1_000 });
    const done = await world.lock.acquire();
    await world.lock.acquire();
    await world.lock.acquire();
    await done.release();
    world.answers.acquire = async () => ({ outcome: "waiting", restMs: 30_000, nowUs: NOW_US });
    world.lock.acquire().catch(() => {});
    await settle();
    world.runtime.block(1_000);
    expect(world.session.held().map(({ token, label }) => [token, label])).toEqual([
      [3, undefined],
      [4, undefined],
    ]);
    // The call that finds an expired lease also reports its loss.
    expect(reasonOf(late)).toBe("expired");
  });
});

describe("a close with a grace", () => {
  test("asks holders to finish and keeps renewing their leases", async () => {
    const lease = await world.lock.acquire();
    const { signal } = lease;
    const closing = watch(world.session.close(GRACE_MS));
    expect(signal.reason).toBeInstanceOf(LeaseLostError);
    expect(reasonOf(lease)).toBe("closing");
    await expect(world.lock.acquire()).rejects.toThrow(ClosedError);
    await world.runtime.advance(GRACE_MS - 1);
    expect(closing.state).toBe("pending");
    lease.assertHeld();
    expect(world.session.held()).toHaveLength(1);
    expect(world.sentOf("extend")).toHaveLength(5);
    expect([...world.sentOf("release"), ...world.sentOf("leave")]).toEqual([]);
    expect(world.store.wasClosed).toBe(false);
    await lease.extend(1_000);
  });

  test("resolves as soon as all leases are released, with nothing left running", async () => {
    const [first, second] = [await world.lock.acquire({ label: "a" }), await world.lock.acquire()];
    const closing = watch(world.session.close(GRACE_MS));
    const held = world.session.held();
    await first.release();
    await world.runtime.advance(100);
    expect(closing.state).toBe("pending");
    await second.release();
    await settle();
    expect(closing.value).toEqual({ released: held, unsettled: [] });
    expect(world.sentOf("release")).toHaveLength(2);
    expect(world.sentOf("leave")).toEqual([]);
    expect(world.store.wasClosed).toBe(true);
    expect(world.runtime.running()).toBe(0);
  });

  test("lets a signal listener release its lease", async () => {
    const lease = await world.lock.acquire();
    lease.signal.addEventListener("abort", () => void lease.release());
    expect(tokensOf(await world.session.close(GRACE_MS))).toEqual({ released: [1], unsettled: [] });
  });

  test("does not wait if nothing is held", async () => {
    expect(await world.session.close(GRACE_MS)).toEqual({ released: [], unsettled: [] });
    expect(world.runtime.running()).toBe(0);
  });

  test("does not keep the process alive", async () => {
    await world.lock.acquire();
    void world.session.close(GRACE_MS);
    await settle();
    expect(world.runtime.running(true)).toBe(0);
  });

  test("stops renewing a lease that outlasts the grace and leaves it to expire", async () => {
    const [slow, quick] = [await world.lock.acquire(), await world.lock.acquire()];
    const closing = watch(world.session.close(5_000));
    await quick.release();
    await world.runtime.advance(4_999);
    expect([closing.state, reasonOf(slow)]).toEqual(["pending", "closing"]);
    await world.runtime.advance(1);
    expect(tokensOf(closing.value)).toEqual({ released: [2], unsettled: [1] });
    expect(slow.validForMs()).toBe(0);
    expect(() => slow.assertHeld()).toThrow("left it to expire");
    const sent = world.sent.length;
    await expect(slow.release()).rejects.toMatchObject({ code: "ERR_LOCK_LEASE_LOST", reason: "closed" });
    await world.runtime.advance(60_000);
    expect(world.sent).toHaveLength(sent);
    expect(world.sentOf("leave")).toEqual([]);
    expect(world.runtime.running()).toBe(0);
  });

  test("returns released and unsettled leases, but no lost or exported ones", async () => {
    const leases = await Promise.all(Array.from({ length: 6 }, () => world.lock.acquire()));
    const [inTime, idle, late, silent, forced, moved] = leases as [Lease, Lease, Lease, Lease, Lease, Lease];
    const number = (lease: Lease): string => lease.owner.split("/")[1] as string;
    world.answers.release = async ({ claim }) => {
      if (claim?.owner === idle.owner) return "unclaimed";
      if (claim?.owner === late.owner) return "claimed";
      if (claim?.owner === silent.owner) throw lost();
      return "released";
    };
    const closing = watch(world.session.close(GRACE_MS));
    world.store.push(`-${number(forced)}`);
    moved.export();
    const ends = Promise.allSettled([inTime, idle, late, silent].map((lease) => lease.release()));
    await world.runtime.advance(10_000);
    expect((await ends).map(({ status }) => status)).toEqual(["fulfilled", "fulfilled", "rejected", "rejected"]);
    expect(tokensOf(closing.value)).toEqual({ released: [1, 2], unsettled: [4] });
  });

  test("does not wait for a lease that is lost meanwhile or expired before", async () => {
    const over = await world.lock.acquire({ renew: false, leaseMs: 1_000 });
    await world.lock.acquire({ renew: false, leaseMs: 10_000 });
    world.runtime.block(1_000);
    const closing = watch(world.session.close(GRACE_MS));
    expect(reasonOf(over)).toBe("expired");
    await world.runtime.advance(8_000);
    expect(closing.state).toBe("pending");
    await world.runtime.advance(1_000);
    expect(closing.value).toEqual({ released: [], unsettled: [] });
  });

  test("waits for the reply to a release in flight when the grace ends", async () => {
    const answer = new Answer<"released">();
    world.answers.release = () => answer.promise;
    const lease = await world.lock.acquire();
    const closing = watch(world.session.close(1_000));
    await world.runtime.advance(500);
    const releasing = watch(lease.release());
    await world.runtime.advance(1_000);
    expect(closing.state).toBe("pending");
    answer.resolve("released");
    await settle();
    expect(releasing.value).toBe("released");
    expect(tokensOf(closing.value)).toEqual({ released: [1], unsettled: [] });
  });

  test("ends waits immediately, before it notifies holders", async () => {
    const lease = await world.lock.acquire();
    world.answers.acquire = async () => ({ outcome: "waiting", restMs: 30_000, nowUs: NOW_US });
    const waiting = watch(world.lock.acquire());
    await settle();
    let left: number | undefined;
    lease.signal.addEventListener("abort", () => {
      left = world.sentOf("leave").length;
    });
    const closing = watch(world.session.close(GRACE_MS));
    expect(left).toBe(1);
    await settle();
    expect(waiting.error).toBeInstanceOf(ClosedError);
    expect([closing.state, reasonOf(lease)]).toEqual(["pending", "closing"]);
    await lease.release();
    await settle();
    expect(closing.state).toBe("fulfilled");
  });

  test("lets a cleanup continue", async () => {
    await world.lock.acquire();
    world.answers.acquire = () => Promise.reject(lost());
    world.answers.leave = () => Promise.reject(lost());
    await expect(world.lock.tryAcquire()).rejects.toThrow();
    const before = world.sentOf("leave").length;
    void world.session.close(GRACE_MS);
    await settle();
    expect(world.sentOf("leave")).toHaveLength(before);
    await world.runtime.advance(5_000);
    expect(world.sentOf("leave").length).toBeGreaterThan(before + 2);
  });
});

describe("a second close", () => {
  test.each([undefined, 1, GRACE_MS])(
    "with a grace of %s waits for the first and returns the same outcome",
    async (graceMs) => {
      const lease = await world.lock.acquire();
      const first = world.session.close(GRACE_MS);
      const second = world.session.close(graceMs);
      const closing = watch(second);
      await world.runtime.advance(GRACE_MS - 1);
      expect(closing.state).toBe("pending");
      lease.assertHeld();
      await lease.release();
      expect(await second).toBe(await first);
    },
  );

  test("with a grace of 0 ends the grace of the first", async () => {
    const lease = await world.lock.acquire();
    const first = watch(world.session.close(GRACE_MS));
    await world.runtime.advance(1_000);
    const second = watch(world.session.close(0));
    await settle();
    expect(tokensOf(first.value)).toEqual({ released: [], unsettled: [1] });
    expect(second.value).toBe(first.value);
    expect(reasonOf(lease)).toBe("closing");
    expect(lease.validForMs()).toBe(0);
    await world.runtime.advance(GRACE_MS);
    expect(world.runtime.running()).toBe(0);
  });

  test("after the first has finished sends nothing", async () => {
    const outcome = await world.session.close();
    expect(await world.session.close(0)).toBe(outcome);
    expect(await world.session.close(GRACE_MS)).toBe(outcome);
    expect(world.sent).toEqual([]);
  });
});

describe("a close without a grace", () => {
  test("releases leases immediately and returns which releases the server confirmed", async () => {
    const [heard, unheard] = [await world.lock.acquire(), await world.lock.acquire()];
    world.answers.leave = ({ claim }) => (claim?.owner === heard.owner ? Promise.resolve() : never());
    const closing = watch(world.session.close());
    expect([reasonOf(heard), reasonOf(unheard)]).toEqual(["closed", "closed"]);
    await world.runtime.advance(10_000);
    expect(tokensOf(closing.value)).toEqual({ released: [1], unsettled: [2] });
    expect(await heard.release()).toBe("released");
    await expect(unheard.release()).rejects.toMatchObject({ code: "ERR_LOCK_STORE", mayHaveRun: true });
    expect(world.sentOf("release")).toEqual([]);
  });
});

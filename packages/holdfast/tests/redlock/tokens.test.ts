/** Tokens of a quorum: the maximum of a majority, which a majority then stores. R8 and R14 of README.md in this folder. */
import { afterEach, beforeAll, describe, expect, test } from "vitest";
import type { Holdfast, Lease } from "../../src/index.js";
import { Pace } from "../../src/redlock/pace.js";
import { watch } from "../unit/scripted-lock.js";
import { randomFrom, ready, settle, VirtualQuorum } from "./virtual-quorum.js";

const NAME = "a";

let quorum: VirtualQuorum;
let holdfast: Holdfast;

beforeAll(ready);
afterEach(() => quorum.close());

function begin(size: number, skewsMs: readonly number[] = []): void {
  quorum = new VirtualQuorum(size, skewsMs);
  holdfast = quorum.client();
}

async function acquired(of: Holdfast = holdfast): Promise<Lease> {
  const acquiring = of.redlock(NAME).acquire();
  await settle();
  return acquiring;
}

async function released(lease: Lease): Promise<void> {
  const releasing = lease.release();
  await settle();
  await releasing;
}

describe("the token", () => {
  test("is the highest number of the granting servers, and a majority stores it", async () => {
    begin(3, [0, 5_000, 9_000]);
    quorum.travel = ({ server }) => (server === 2 ? { thereMs: Infinity } : {});
    const lease = await acquired();
    expect(lease.token).toBe((quorum.runtime.wallMs() + 5_000) * 1_000);
    expect(quorum.numbers(NAME)).toEqual([lease.token, lease.token, undefined]);
    expect(quorum.sent("confirm").map(({ server }) => server)).toEqual([0]);
  });

  test("takes one round trip if a majority already has the same number", async () => {
    begin(5, [40, 30, 20, 10, 0]);
    await released(await acquired());
    const confirms = quorum.sent("confirm").length;
    expect(confirms).toBeGreaterThan(0);
    let last = 0;
    for (let i = 0; i < 5; i += 1) {
      const lease = await acquired();
      expect(lease.token).toBeGreaterThan(last);
      last = lease.token;
      await released(lease);
    }
    expect(quorum.sent("confirm")).toHaveLength(confirms);
  });

  test("rises even if each holder has a different majority of servers with clocks hours apart", async () => {
    begin(3, [0, 7_200_000, -3_600_000]);
    let last = 0;
    for (let away = 0; away < 9; away += 1) {
      quorum.travel = ({ server }) => (server === away % 3 ? { refused: "away" } : {});
      const lease = await acquired();
      expect(lease.token).toBeGreaterThan(last);
      last = lease.token;
      const standing = quorum.numbers(NAME).filter((number) => number === lease.token);
      expect(standing).toHaveLength(2);
      await released(lease);
    }
  });

  test("makes a late release reject even if late copies of its acquire took the lock again", async () => {
    for (const skews of [[], [0, 5_000, 9_000]]) {
      begin(3, skews);
      const acquiring = holdfast.redlock(NAME).acquire({ leaseMs: 1_000, renew: false });
      await settle();
      const late = await acquiring;
      const copies = quorum.sent("acquire").filter(({ owner }) => owner === late.owner);
      await quorum.runtime.advance(2_000);
      await released(await acquired(quorum.client()));
      await quorum.resend(copies);
      expect(quorum.owners(NAME)).toEqual([late.owner, late.owner, late.owner]);
      const releasing = watch(late.release());
      await quorum.runtime.advance(1_000);
      expect(releasing.error).toMatchObject({ code: "ERR_LOCK_LEASE_LOST" });
      await quorum.close();
    }
    begin(3);
  });

  test("stays the same if a copy of the acquire arrives while the lock is held", async () => {
    begin(3);
    const lease = await acquired();
    const before = quorum.numbers(NAME);
    const copies = quorum.sent("acquire");
    await quorum.resend(copies);
    expect(quorum.numbers(NAME)).toEqual(before);
    expect((await quorum.inspected(holdfast, NAME)).token).toBe(lease.token);
  });

  test("is not issued if a server of its majority has since granted another client", async () => {
    begin(3, [0, 5_000, 0]);
    // Server 0 has a lower number. Before that is raised, it loses the lease and grants another client.
    quorum.travel = ({ server, verb }) => {
      if (server === 2) return { thereMs: Infinity };
      return verb === "confirm" ? { thereMs: 100 } : {};
    };
    const trying = watch(holdfast.redlock(NAME).tryAcquire());
    await settle();
    await quorum.forget(0);
    await quorum.occupy(0, NAME, 60_000);
    await quorum.runtime.advance(100);
    expect(trying).toEqual({ state: "fulfilled", value: null });
    expect(quorum.owners(NAME).slice(1)).toEqual([undefined, undefined]);
  });

  test("is not issued if it is unknown whether a server of its majority has stored it", async () => {
    begin(3, [0, 5_000, 0]);
    quorum.travel = ({ server, verb }) => (server === 2 || verb === "confirm" ? { thereMs: Infinity } : {});
    const trying = watch(holdfast.redlock(NAME).tryAcquire());
    await quorum.runtime.advance(4_000);
    expect(trying.state).toBe("rejected");
    expect(trying.error).toMatchObject({ code: "ERR_LOCK_QUORUM", mayHaveRun: true, transient: true });
    expect(quorum.owners(NAME).slice(0, 2)).toEqual([undefined, undefined]);
  });
});

interface Turn {
  readonly calledAtMs: number;
  readonly grantedAtMs: number;
  readonly endedAtMs: number;
  readonly token: number;
}

describe("R8: contenders that start at the same moment", () => {
  test.each([
    [3, 1],
    [5, 2],
  ])("all get their turns on %i servers with random network delays (seed %i)", async (size, seed) => {
    begin(size, [3, 1, 4, 1, 5]);
    const random = randomFrom(seed);
    quorum.runtime.random = random;
    quorum.travel = () => ({ thereMs: 1 + random() * 9, backMs: 1 + random() * 9 });
    const turns: Turn[] = [];
    const clock = (): number => quorum.runtime.monotonicMs();
    const contend = async (client: Holdfast): Promise<void> => {
      for (let i = 0; i < 3; i += 1) {
        const calledAtMs = clock();
        const lease = await client.redlock(NAME).acquire({ waitMs: Infinity });
        const grantedAtMs = clock();
        await new Promise<void>((resolve) => quorum.runtime.startTimer(resolve, 5, true));
        const endedAtMs = clock();
        turns.push({ calledAtMs, grantedAtMs, endedAtMs, token: lease.token });
        await lease.release();
      }
    };
    const done = watch(Promise.all(Array.from({ length: 10 }, () => contend(quorum.client()))));
    for (let second = 0; second < 60 && done.state === "pending"; second += 1) await quorum.runtime.advance(1_000);
    expect(done).toMatchObject({ state: "fulfilled" });
    expect(turns).toHaveLength(30);
    const inTime = turns.toSorted((a, b) => a.grantedAtMs - b.grantedAtMs);
    for (const [i, turn] of inTime.entries()) {
      const next = inTime[i + 1];
      if (next !== undefined) expect(turn.endedAtMs).toBeLessThanOrEqual(next.grantedAtMs);
      // F1 and F2: tokens are unique, and higher than that of any holder before the call.
      const before = inTime.filter((other) => other.grantedAtMs <= turn.calledAtMs);
      expect(turn.token).toBeGreaterThan(Math.max(0, ...before.map(({ token }) => token)));
    }
    expect(new Set(turns.map(({ token }) => token)).size).toBe(30);
  });

  test("back off for a random time, longer than a win takes and growing with each conflict", () => {
    begin(3);
    quorum.runtime.random = randomFrom(7);
    const pace = new Pace(quorum.runtime);
    for (let i = 0; i < 50; i += 1) pace.took(20);
    const firsts = Array.from({ length: 200 }, () => pace.delayMs(0));
    const fifths = Array.from({ length: 200 }, () => pace.delayMs(5));
    for (const delayMs of [...firsts, ...fifths]) expect(delayMs).toBeGreaterThanOrEqual(19.9);
    expect(Math.max(...firsts)).toBeLessThan(60.1);
    expect(Math.max(...fifths) - Math.min(...fifths)).toBeGreaterThan(1_000);
    expect(new Set(firsts).size).toBe(200);
  });
});

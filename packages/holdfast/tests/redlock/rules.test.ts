/** The rules of Redlock, one by one, on virtual time. R and K numbers refer to README.md in this folder. */
import { afterEach, beforeAll, describe, expect, test } from "vitest";
import { AcquireTimeoutError, type Holdfast, type Lease, LeaseLostError, QuorumError } from "../../src/index.js";
import { watch } from "../unit/scripted-lock.js";
import { ready, settle, type Travel, VirtualQuorum } from "./virtual-quorum.js";

const NAME = "a";
const LEASE_MS = 30_000;
/** The trusted part of a lease: 1% and 2 ms less. */
const TRUSTED_MS = 29_698;
const DEADLINE_MS = 2_000;
const HUNG: Travel = { thereMs: Infinity };

let quorum: VirtualQuorum;
let holdfast: Holdfast;

beforeAll(ready);
afterEach(() => quorum.close());

function begin(size: number, skewsMs: readonly number[] = []): void {
  quorum = new VirtualQuorum(size, skewsMs);
  holdfast = quorum.client();
}

/** Acquires a lease. Only its messages take time. */
async function acquired(of: Holdfast = holdfast): Promise<Lease> {
  const acquiring = of.redlock(NAME).acquire();
  await settle();
  return acquiring;
}

describe("R1: each attempt has its own owner id, the same on all servers", () => {
  test("a new attempt never reuses an owner id", async () => {
    begin(3);
    const holder = await acquired();
    const waiting = quorum.client().redlock(NAME).acquire({ waitMs: 20_000 });
    await quorum.runtime.advance(9_000);
    await holder.release();
    await quorum.runtime.advance(500);
    await (await waiting).release();
    await settle();
    const owners = quorum.sent("acquire").map(({ owner }) => owner);
    const attempts = new Set(owners);
    expect(attempts.size).toBeGreaterThan(4);
    for (const owner of attempts) {
      const servers = quorum.sent("acquire").filter((request) => request.owner === owner);
      // An attempt that fails at the first server sends no request to the others.
      expect([[0], [0, 1, 2]]).toContainEqual(servers.map(({ server }) => server));
    }
    for (const { owner } of [...quorum.sent("release"), ...quorum.sent("confirm")]) expect(attempts).toContain(owner);
  });
});

describe("R2, R5, R6: validity = lease - elapsed - drift, measured from before the first request", () => {
  test.each([
    ["on the way there", { thereMs: 700 }],
    ["on the way back", { backMs: 700 }],
  ])("time spent %s reduces the validity", async (_, travel) => {
    begin(5);
    quorum.travel = () => travel;
    const acquiring = holdfast.redlock(NAME).acquire();
    await quorum.runtime.advance(1_400);
    const lease = await acquiring;
    // All servers have the same token because their clocks agree to the microsecond, so one round trip of 700 ms is
    // enough.
    expect(lease.validForMs()).toBe(TRUSTED_MS - 1_400);
  });

  test("a second round also reduces the validity", async () => {
    begin(3, [0, 10, 20]);
    quorum.travel = () => ({ thereMs: 300, backMs: 300 });
    const acquiring = watch(holdfast.redlock(NAME).acquire());
    await quorum.runtime.advance(1_199);
    expect(acquiring.state).toBe("pending");
    await quorum.runtime.advance(1);
    expect(acquiring.value?.validForMs()).toBe(TRUSTED_MS - 1_200);
  });

  test.each([100, 150, 1_000, 7_777, 60_000, 3_600_000, 86_400_000])(
    "a lease of %i ms is valid for its length minus the drift",
    async (leaseMs) => {
      begin(3);
      const acquiring = holdfast.redlock(NAME).acquire({ leaseMs });
      await settle();
      const lease = await acquiring;
      expect(lease.validForMs()).toBeCloseTo(leaseMs - (leaseMs / 100 + 2), 2);
    },
  );
});

describe("R3: requests go to all servers in parallel, and hung servers cost at most one deadline", () => {
  test.each([
    [5, 0],
    [5, 1],
    [5, 2],
    [7, 3],
  ])("a quorum of %i servers with %i hung loses no time", async (size, hung) => {
    begin(size);
    quorum.travel = ({ server }) => (server < hung ? HUNG : {});
    const acquiring = watch(holdfast.redlock(NAME).acquire());
    await settle();
    expect(acquiring.value?.validForMs()).toBe(TRUSTED_MS);
    const releasing = watch(acquiring.value?.release() ?? Promise.reject(new Error("there is no lease")));
    await settle();
    expect(releasing.value).toBe("released");
  });

  test.each([3, 4, 5])("with 5 servers, %i hung servers cost one deadline, not one each", async (hung) => {
    begin(5);
    quorum.travel = ({ server }) => (server < hung ? HUNG : {});
    const trying = watch(holdfast.redlock(NAME).tryAcquire());
    await quorum.runtime.advance(DEADLINE_MS - 1);
    expect(trying.state).toBe("pending");
    await quorum.runtime.advance(1);
    expect(trying.error).toBeInstanceOf(QuorumError);
  });

  test("each request for a short lease has a deadline of a sixth of the lease", async () => {
    begin(3);
    await acquired();
    const trying = quorum.client().redlock(NAME).tryAcquire({ leaseMs: 600 });
    await settle();
    await trying;
    expect(quorum.sent("acquire").at(-1)?.timeoutMs).toBe(100);
  });
});

describe("R4: granted if and only if a majority granted in time", () => {
  const splits = [3, 5, 7, 9].flatMap((size) => {
    const all: [number, number, number, number][] = [];
    for (let yes = 0; yes <= size; yes += 1)
      for (let no = 0; yes + no <= size; no += 1) all.push([size, yes, no, size - yes - no]);
    return all;
  });

  test.each(splits)("%i servers: %i yes, %i no, %i hung", async (size, yes, no) => {
    begin(size);
    const majority = (size + 1) / 2;
    for (let server = yes; server < yes + no; server += 1) await quorum.occupy(server, NAME, 60_000);
    quorum.travel = ({ server }) => (server >= yes + no ? HUNG : {});
    const trying = watch(holdfast.redlock(NAME).tryAcquire());
    await quorum.runtime.advance(DEADLINE_MS);
    if (yes >= majority) expect(trying.value?.validForMs()).toBeGreaterThan(0);
    else if (yes + no >= majority) expect(trying).toEqual({ state: "fulfilled", value: null });
    else expect(trying.error).toBeInstanceOf(QuorumError);
    if (yes < majority) for (const owner of quorum.owners(NAME).slice(0, yes)) expect(owner).toBeUndefined();
  });

  test.each([
    [0, true],
    [1, false],
  ])("a lease is granted only if at least 1 ms of validity remains (%i ms left)", async (beforeMs, isLate) => {
    begin(3);
    quorum.travel = ({ verb }) => (verb === "acquire" ? { backMs: 1 } : {});
    const trying = watch(holdfast.redlock(NAME).tryAcquire());
    await settle();
    quorum.runtime.block(TRUSTED_MS - beforeMs);
    await quorum.runtime.advance(0);
    if (isLate) expect(trying.error).toBeInstanceOf(QuorumError);
    else expect(trying.value?.validForMs()).toBe(1);
  });

  test("K6: replies read after a stall beyond the lease are not trusted, and their grants are released", async () => {
    begin(5);
    quorum.travel = ({ verb }) => (verb === "acquire" ? { backMs: 1 } : {});
    const trying = watch(holdfast.redlock(NAME).tryAcquire({ leaseMs: 1_000_000 }));
    await settle();
    expect(quorum.owners(NAME).every((owner) => owner !== undefined)).toBe(true);
    quorum.runtime.block(995_000);
    await quorum.runtime.advance(0);
    expect(trying.error).toBeInstanceOf(QuorumError);
    expect(String(trying.error)).toContain("the lease had expired when their replies were read");
    expect(quorum.owners(NAME)).toEqual([undefined, undefined, undefined, undefined, undefined]);
  });

  test("K6: the wall clock alone detects that the host was suspended", async () => {
    begin(3);
    quorum.travel = ({ verb }) => (verb === "acquire" ? { backMs: 1 } : {});
    const trying = watch(holdfast.redlock(NAME).tryAcquire());
    await settle();
    quorum.runtime.stepWall(TRUSTED_MS);
    await quorum.runtime.advance(1);
    expect(trying.error).toBeInstanceOf(QuorumError);
  });
});

describe("R7: a failed attempt is released on all servers", () => {
  test("including servers that refused, did not reply, or whose grant reply was lost", async () => {
    begin(5);
    await quorum.occupy(0, NAME, 60_000);
    await quorum.occupy(1, NAME, 60_000);
    // Server 2 grants but its reply is lost, server 3 never gets a request, and server 4 grants.
    quorum.travel = ({ server, verb }) => {
      if (server === 3) return HUNG;
      return server === 2 && verb === "acquire" ? { backMs: Infinity } : {};
    };
    const trying = watch(holdfast.redlock(NAME).tryAcquire());
    await quorum.runtime.advance(DEADLINE_MS);
    expect(trying).toEqual({ state: "fulfilled", value: null });
    expect(new Set(quorum.sent("release").map(({ server }) => server))).toEqual(new Set([0, 1, 2, 3, 4]));
    expect(quorum.owners(NAME).slice(2)).toEqual([undefined, undefined, undefined]);
  });

  test("a request that arrives after the release is undone, and then nothing more is sent", async () => {
    begin(3);
    quorum.travel = ({ verb, server }) => {
      if (server === 0) return HUNG;
      if (server === 1) return {};
      return verb === "acquire" ? { thereMs: 10_000 } : {};
    };
    const trying = watch(holdfast.redlock(NAME).tryAcquire());
    await quorum.runtime.advance(DEADLINE_MS);
    expect(trying.error).toBeInstanceOf(QuorumError);
    await quorum.runtime.advance(10_000 - DEADLINE_MS);
    expect(quorum.owners(NAME)[2]).toBeDefined();
    await quorum.runtime.advance(10_000);
    expect(quorum.owners(NAME)[2]).toBeUndefined();
    const to1 = quorum.sent("release").filter(({ server }) => server === 1);
    expect(to1).toHaveLength(1);
    await quorum.runtime.advance(LEASE_MS);
    const { length } = quorum.requests;
    await quorum.runtime.advance(10 * LEASE_MS);
    expect(quorum.requests).toHaveLength(length);
    expect(quorum.runtime.running()).toBe(0);
  });

  test("a late grant of a failed attempt is released", async () => {
    begin(3);
    await quorum.occupy(0, NAME, 60_000);
    await quorum.occupy(1, NAME, 60_000);
    quorum.travel = ({ server, verb }) => (server === 2 && verb === "acquire" ? { thereMs: 500, backMs: 500 } : {});
    const trying = watch(holdfast.redlock(NAME).tryAcquire());
    await settle();
    expect(trying).toEqual({ state: "fulfilled", value: null });
    await quorum.runtime.advance(999);
    expect(quorum.owners(NAME)[2]).toBeUndefined(); // by a release that came after the grant
    await quorum.runtime.advance(1);
    expect(quorum.owners(NAME)[2]).toBeUndefined();
  });
});

describe("R9: a release compares and deletes on all servers", () => {
  test("a delayed release does not remove a successor", async () => {
    begin(3);
    const lease = await acquired();
    quorum.travel = ({ server, verb }) => (verb === "release" && server === 2 ? { thereMs: 5_000 } : {});
    const releasing = lease.release();
    await settle();
    expect(await releasing).toBe("released");
    quorum.travel = () => ({});
    const rival = quorum.client();
    const next = await acquired(rival);
    await quorum.runtime.advance(6_000);
    expect(quorum.owners(NAME).filter((owner) => owner === next.owner).length).toBeGreaterThanOrEqual(2);
    next.assertHeld();
  });

  test("a grant that a slow server makes after the release is released", async () => {
    begin(3);
    quorum.travel = ({ server, verb }) => (verb === "acquire" && server === 2 ? { thereMs: 1_000 } : {});
    const lease = await acquired();
    const releasing = lease.release();
    await settle();
    expect(await releasing).toBe("released");
    await quorum.runtime.advance(1_100);
    expect(quorum.owners(NAME)).toEqual([undefined, undefined, undefined]);
  });
});

describe("a release before every server has replied to the acquire", () => {
  const giveBack = async (travel: (server: number, verb: string) => Travel): Promise<number[]> => {
    begin(5);
    quorum.travel = ({ server, verb }) => travel(server, verb);
    const acquiring = holdfast.redlock(NAME).acquire();
    await quorum.runtime.advance(10);
    const lease = await acquiring;
    const releasing = lease.release();
    await quorum.runtime.advance(100);
    expect(await releasing).toBe("released");
    expect(quorum.owners(NAME)).toEqual([undefined, undefined, undefined, undefined, undefined]);
    return quorum.sent("release").map(({ server }) => server);
  };

  test("is sent once to each server if it certainly ran after the acquire", async () => {
    const slow = (server: number): Travel => ({ thereMs: 1, backMs: server > 2 ? 15 : 1 });
    expect((await giveBack(slow)).toSorted((a, b) => a - b)).toEqual([0, 1, 2, 3, 4]);
  });

  test("is resent to a server whose acquire may have run after it", async () => {
    const overtaken = (server: number, verb: string): Travel =>
      server === 4 && verb === "acquire" ? { thereMs: 15 } : { thereMs: 1, backMs: 1 };
    expect((await giveBack(overtaken)).toSorted((a, b) => a - b)).toEqual([0, 1, 2, 3, 4, 4]);
  });

  test("is resent even if its reply came before that of the acquire", async () => {
    const overtaken = (server: number, verb: string): Travel =>
      server === 4 ? (verb === "acquire" ? { thereMs: 15 } : { thereMs: 1, backMs: 20 }) : { thereMs: 1, backMs: 1 };
    expect((await giveBack(overtaken)).toSorted((a, b) => a - b)).toEqual([0, 1, 2, 3, 4, 4]);
  });
});

describe("a lease extended beyond its original length", () => {
  const extended = async (): Promise<Lease> => {
    begin(3);
    const lease = await acquired();
    const extending = lease.extend(8 * LEASE_MS);
    await settle();
    await extending;
    return lease;
  };

  test("is released on all servers when its Holdfast closes", async () => {
    await extended();
    const closing = watch(holdfast.close());
    await quorum.runtime.advance(2 * DEADLINE_MS);
    expect(closing.state).toBe("fulfilled");
    expect(quorum.owners(NAME)).toEqual([undefined, undefined, undefined]);
  });

  test.each([
    ["one server is", 1, "fulfilled"],
    ["two servers are", 2, "rejected"],
  ])("is released even if %s silent for longer than its original length", async (_, silent, state) => {
    const lease = await extended();
    quorum.travel = ({ server }) => (server < silent ? HUNG : {});
    const releasing = watch(lease.release());
    await quorum.runtime.advance(LEASE_MS + 10_000);
    expect(releasing.state).toBe(state);
    quorum.travel = () => ({});
    await quorum.runtime.advance(20_000);
    expect(quorum.owners(NAME)).toEqual([undefined, undefined, undefined]);
  });
});

describe("R10: the holder is notified before its validity ends", () => {
  test("the signal aborts at the end of validity if no server replies", async () => {
    begin(5);
    const lease = await acquired();
    quorum.travel = () => HUNG;
    await quorum.runtime.advance(TRUSTED_MS - 1);
    expect(lease.signal.aborted).toBe(false);
    await quorum.runtime.advance(1);
    expect(lease.signal.aborted).toBe(true);
    expect(lease.signal.reason).toMatchObject({ reason: "expired" });
    expect(quorum.owners(NAME).filter((owner) => owner === lease.owner)).toHaveLength(5);
  });

  test("a slow server's grant belongs to the lease and is released with it", async () => {
    begin(5, [0, 0, 0, 0, 3_000]);
    quorum.travel = ({ server, verb }) => (verb === "acquire" && server >= 3 ? { backMs: 100 } : {});
    const lease = await acquired();
    await quorum.runtime.advance(200);
    expect(quorum.owners(NAME)).toEqual(Array.from({ length: 5 }, () => lease.owner));
    await quorum.forget(0);
    await quorum.forget(1);
    await quorum.runtime.advance(LEASE_MS);
    expect(lease.validForMs()).toBeGreaterThan(0);
    const releasing = lease.release();
    await settle();
    expect(await releasing).toBe("released");
    expect(quorum.owners(NAME)).toEqual(Array.from({ length: 5 }, () => undefined));
  });
});

describe("R12: a lease is renewed by a majority, within its validity", () => {
  test("a renewal goes to all servers every third of the lease, with the same owner", async () => {
    begin(3);
    const lease = await acquired();
    await quorum.runtime.advance(LEASE_MS);
    expect(quorum.sent("extend").map(({ owner }) => owner)).toEqual(Array.from({ length: 9 }, () => lease.owner));
    expect(lease.validForMs()).toBe(TRUSTED_MS);
  });

  test.each([
    [5, 2, false],
    [5, 3, true],
    [3, 1, false],
    [3, 2, true],
  ])("with %i servers, of which %i still hold the lease, it is kept: %s", async (size, left, isKept) => {
    begin(size);
    const lease = await acquired();
    for (let server = left; server < size; server += 1) await quorum.forget(server);
    await quorum.runtime.advance(LEASE_MS / 3);
    expect(lease.signal.aborted).toBe(!isKept);
    if (!isKept) expect(lease.signal.reason).toMatchObject({ reason: "server-lost" });
  });

  test("replies from a minority neither lose nor renew the lease", async () => {
    begin(5);
    const lease = await acquired();
    quorum.travel = ({ server }) => (server < 3 ? HUNG : {});
    await quorum.runtime.advance(TRUSTED_MS - 1);
    lease.assertHeld();
    expect(lease.validForMs()).toBe(1);
    expect(quorum.owners(NAME).slice(3)).toEqual([lease.owner, lease.owner]);
    quorum.travel = () => ({});
    await quorum.runtime.advance(1);
    expect(() => lease.assertHeld()).toThrow(LeaseLostError);
  });

  test("maxHoldMs ends the lease despite renewals", async () => {
    begin(3);
    const acquiring = holdfast.redlock(NAME).acquire({ maxHoldMs: 40_000 });
    await settle();
    const lease = await acquiring;
    await quorum.runtime.advance(39_999);
    lease.assertHeld();
    await quorum.runtime.advance(1);
    expect(lease.signal.reason).toMatchObject({ reason: "max-hold" });
  });
});

describe("a waiter", () => {
  test("is woken by the release before its next poll", async () => {
    begin(5);
    const lease = await acquired();
    const waiting = watch(quorum.client().redlock(NAME).acquire());
    await quorum.runtime.advance(1_500);
    expect(waiting.state).toBe("pending");
    void lease.release();
    await quorum.runtime.advance(30);
    expect(waiting.state).toBe("fulfilled");
  });

  test.each([0, 1])("is granted even if messages arrive from only %i of 5 servers", async (heard) => {
    begin(5);
    const lease = await acquired();
    quorum.isHeard = (server) => server < heard;
    const waiting = watch(quorum.client().redlock(NAME).acquire());
    await quorum.runtime.advance(1_500);
    void lease.release();
    await quorum.runtime.advance(2_030);
    expect(waiting.state).toBe("fulfilled");
  });

  test("is granted when an unrenewed lease has expired on the servers", async () => {
    begin(3);
    const acquiring = holdfast.redlock(NAME).acquire({ renew: false, leaseMs: 1_000 });
    await settle();
    const lease = await acquiring;
    const waiting = watch(quorum.client().redlock(NAME).acquire());
    await quorum.runtime.advance(999);
    expect(waiting.state).toBe("pending");
    expect(lease.validForMs()).toBe(0);
    await quorum.runtime.advance(60);
    expect(waiting.state).toBe("fulfilled");
  });

  test("that times out learns the holder and leaves nothing behind", async () => {
    begin(3);
    const lease = await acquired();
    const waiting = watch(quorum.client().redlock(NAME).acquire({ waitMs: 300 }));
    await quorum.runtime.advance(299);
    expect(waiting.state).toBe("pending");
    await quorum.runtime.advance(1);
    expect(waiting.error).toBeInstanceOf(AcquireTimeoutError);
    expect((waiting.error as AcquireTimeoutError).holder).toMatchObject({ owner: lease.owner, token: lease.token });
    expect(quorum.owners(NAME)).toEqual([lease.owner, lease.owner, lease.owner]);
  });

  test("does not split the votes with other waiters of its process", async () => {
    begin(3);
    const lease = await acquired();
    const { length } = quorum.sent("acquire");
    const waiting = Array.from({ length: 10 }, () => watch(holdfast.redlock(NAME).acquire({ waitMs: Infinity })));
    await quorum.runtime.advance(100);
    expect(
      new Set(
        quorum
          .sent("acquire")
          .slice(length)
          .map(({ owner }) => owner),
      ).size,
    ).toBeLessThan(5);
    void lease.release();
    for (let served = 1; served <= 10; served += 1) {
      await quorum.runtime.advance(200);
      const [next] = waiting.filter(({ state, value }) => state === "fulfilled" && (value?.validForMs() ?? 0) > 0);
      expect(waiting.filter(({ state }) => state === "fulfilled")).toHaveLength(served);
      void next?.value?.release();
    }
  });

  test("that aborts releases what its attempt has been granted", async () => {
    begin(3);
    quorum.travel = ({ verb }) => (verb === "acquire" ? { thereMs: 50, backMs: 50 } : {});
    const controller = new AbortController();
    const reason = new Error("enough");
    const waiting = watch(holdfast.redlock(NAME).acquire({ signal: controller.signal }));
    await quorum.runtime.advance(70);
    controller.abort(reason);
    await settle();
    expect(waiting.error).toBe(reason);
    await quorum.runtime.advance(100);
    expect(quorum.owners(NAME)).toEqual([undefined, undefined, undefined]);
  });

  test("outlasts an outage of a majority, or reports it when it times out", async () => {
    begin(5);
    quorum.travel = ({ server }) => (server < 3 ? { refused: "connect ECONNREFUSED" } : {});
    const patient = watch(holdfast.redlock(NAME).acquire({ waitMs: 20_000 }));
    const hasty = watch(quorum.client().redlock(NAME).acquire({ waitMs: 1_000 }));
    await quorum.runtime.advance(1_500);
    expect(patient.state).toBe("pending");
    const error = hasty.error as QuorumError;
    expect(error).toBeInstanceOf(QuorumError);
    expect(error.code).toBe("ERR_LOCK_QUORUM");
    expect(error.answers.map(({ answer }) => answer).slice(0, 3)).toEqual(["error", "error", "error"]);
    expect(error.message).toContain("server 0 failed (connect ECONNREFUSED)");
    quorum.travel = () => ({});
    await quorum.runtime.advance(600);
    expect(patient.state).toBe("fulfilled");
  });
});

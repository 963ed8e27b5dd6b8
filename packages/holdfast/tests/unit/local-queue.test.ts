/** Callers of one process that share a claim, on a manual clock. */
import { beforeEach, describe, expect, test } from "vitest";
import { AcquireTimeoutError, ClosedError, LeaseLostError, PausedError, StoreError } from "../../src/core/errors.js";
import type { Lease } from "../../src/core/lease.js";
import { LocalQueues } from "../../src/core/local-queue.js";
import { DEFAULTS, type ResolvedOptions } from "../../src/core/options.js";
import type { State } from "../../src/core/protocol.js";
import { Answer, lost, NOBODY, NOW_US, never, ScriptedLock, type Watched, watch } from "./scripted-lock.js";

const TOKEN = 1_000;
const BLOCK = 32;

let world: ScriptedLock;
let startMs: number;
beforeEach(() => {
  world = new ScriptedLock({ takesTurns: true });
  startMs = world.runtime.monotonicMs();
  taken();
});

/** A server whose lock is held: it queues every claim that asks for it. */
function taken(): void {
  world.answers.acquire = async ({ enqueue }) => ({
    outcome: enqueue === true ? "waiting" : "refused",
    restMs: 30_000,
    nowUs: NOW_US + Math.round((world.runtime.monotonicMs() - startMs) * 1_000),
  });
}

/** Starts `count` callers now. */
function callers(count: number, options: Parameters<typeof world.lock.acquire>[0] = {}): Watched<Lease>[] {
  return Array.from({ length: count }, () => watch(world.lock.acquire({ waitMs: Infinity, ...options })));
}

/** The server grants the newest claim `ms` after the start of the test by its own clock. The message arrives now. */
async function grant(ms = world.runtime.monotonicMs() - startMs, token = TOKEN): Promise<void> {
  world.store.push(`+${newest()} ${token} ${NOW_US + Math.round(ms * 1_000)}`);
  await world.runtime.advance(0);
}

/** The number of the newest requested claim. */
function newest(): number {
  return world.sentOf("acquire").at(-1)?.claim?.number ?? 0;
}

function states(watched: readonly Watched<unknown>[]): string[] {
  return watched.map(({ state }) => state);
}

/** The lease of a caller. @throws Error  if the caller has none */
function leaseOf(watched: Watched<Lease> | undefined): Lease {
  if (watched?.value === undefined) throw new Error(`it is ${watched?.state}`);
  return watched.value;
}

describe("a batch", () => {
  test("serves all callers that waited at the grant, with consecutive tokens and no requests", async () => {
    const waiting = callers(3);
    await world.runtime.advance(5);
    await grant();
    const before = world.sent.length;
    for (const [i, caller] of waiting.entries()) {
      expect(states(waiting)).toEqual(waiting.map((_, j) => (j <= i ? "fulfilled" : "pending")));
      const lease = leaseOf(caller);
      expect(lease.token).toBe(TOKEN + i);
      expect(lease.validForMs()).toBeGreaterThan(29_000);
      if (i < 2) expect(await lease.release()).toBe("released");
      await world.runtime.advance(0);
    }
    expect(world.sent.length).toBe(before);
    expect(await leaseOf(waiting[2]).release()).toBe("released");
    expect(world.sent.slice(before).map(({ verb }) => verb)).toEqual(["release"]);
    await world.runtime.advance(60_000);
    expect(world.runtime.running()).toBe(0);
  });

  test("excludes a caller that arrived after the grant but before its message", async () => {
    const [early] = callers(1);
    await world.runtime.advance(5);
    await world.runtime.advance(2);
    const [late] = callers(1);
    await world.runtime.advance(3);
    await grant(5);
    expect([early?.state, late?.state]).toEqual(["fulfilled", "pending"]);
    const asked = world.sentOf("acquire").length;
    expect(new Set(world.sentOf("acquire").map(({ claim }) => claim?.owner)).size).toBe(2);
    await leaseOf(early).release();
    await world.runtime.advance(0);
    expect(late?.state).toBe("pending");
    expect(world.sentOf("release")).toHaveLength(1);
    expect(world.sentOf("acquire")).toHaveLength(asked);
    await grant(11, TOKEN + 100);
    expect(leaseOf(late).token).toBe(TOKEN + 100);
  });

  test("includes earlier callers even if the wall clock was set back since", async () => {
    const waiting = callers(2);
    await world.runtime.advance(5);
    world.runtime.stepWall(-5_000);
    await world.runtime.advance(5);
    await grant();
    expect(waiting[0]?.state).toBe("fulfilled");
    expect(world.sentOf("leave")).toEqual([]);
  });

  test("excludes a caller that arrived after the grant, even if the monotonic clock stood still", async () => {
    const [early] = callers(1, { leaseMs: 60_000 });
    await world.runtime.advance(5);
    // The host is suspended for 10 s. The server makes the grant after 4 s.
    world.runtime.stepWall(10_000);
    const [late] = callers(1, { leaseMs: 60_000 });
    await grant(4_000);
    await leaseOf(early).release();
    expect(late?.state).toBe("pending");
    expect(world.sentOf("release")).toHaveLength(1);
  });

  test("includes the caller that requested the claim, even if both clocks say that it came later", async () => {
    const waiting = callers(3);
    await world.runtime.advance(5);
    await grant();
    world.runtime.stepWall(-3_600_000);
    await leaseOf(waiting[0]).release();
    expect(world.sentOf("acquire").length).toBeGreaterThan(1);
    await grant(undefined, TOKEN + 100);
    await leaseOf(waiting[1]).release();
    await grant(undefined, TOKEN + 200);
    expect(states(waiting)).toEqual(["fulfilled", "fulfilled", "fulfilled"]);
    expect(world.sentOf("leave")).toEqual([]);
  });

  test("is no larger than the reserved tokens, and the other callers queue immediately", async () => {
    const waiting = callers(BLOCK + 5);
    await world.runtime.advance(5);
    const first = newest();
    await grant();
    expect(newest()).not.toBe(first);
    for (const caller of waiting.slice(0, BLOCK)) {
      await leaseOf(caller).release();
      await world.runtime.advance(0);
    }
    expect(states(waiting).filter((state) => state === "fulfilled")).toHaveLength(BLOCK);
    expect(world.sentOf("release")).toHaveLength(1);
    await grant(undefined, TOKEN + 100);
    expect(leaseOf(waiting[BLOCK]).token).toBe(TOKEN + 100);
  });

  test("is four times as large while many callers wait", async () => {
    const crowd = callers(5 * BLOCK);
    await world.runtime.advance(5);
    const amounts: number[] = [];
    for (let served = 0, batch = 0; batch < 4; batch += 1) {
      const { number, amount } = world.sentOf("acquire").at(-1)?.claim ?? { number: 0, amount: 0 };
      amounts.push(amount);
      await grant(undefined, TOKEN + batch * 1_000);
      for (let i = 0; i < amount && served < crowd.length; i += 1) {
        expect(leaseOf(crowd[served]).token).toBe(TOKEN + batch * 1_000 + i);
        await leaseOf(crowd[served++]).release();
        await world.runtime.advance(0);
      }
      if (served === crowd.length) crowd.push(...callers(1));
      if (newest() === number) await world.runtime.advance(5);
    }
    expect(amounts).toEqual([BLOCK, 4 * BLOCK, 4 * BLOCK, BLOCK]);
  });

  test("alternates between 32 and 128 reserved tokens for forty callers that keep returning", async () => {
    const waiting = callers(40);
    await world.runtime.advance(5);
    const amounts: number[] = [];
    for (let batch = 0; batch < 6; batch += 1) {
      amounts.push(world.sentOf("acquire").at(-1)?.claim?.amount ?? 0);
      await grant(undefined, TOKEN + batch * 1_000);
      for (const caller of waiting.splice(0, Math.min(waiting.length, amounts.at(-1) ?? 0))) {
        await leaseOf(caller).release();
        waiting.push(...callers(1));
        await world.runtime.advance(0);
      }
      await world.runtime.advance(5);
    }
    expect(amounts).toEqual([BLOCK, 4 * BLOCK, BLOCK, 4 * BLOCK, BLOCK, 4 * BLOCK]);
  });

  test("reserves as many tokens as a large batch can serve", async () => {
    const crowd = callers(BLOCK + 1);
    await world.runtime.advance(5);
    await grant();
    for (const caller of crowd.slice(0, BLOCK)) {
      await leaseOf(caller).release();
      await world.runtime.advance(0);
    }
    await grant(undefined, TOKEN + 100);
    const exported = leaseOf(crowd[BLOCK]).export();
    expect(exported).toMatchObject({ token: TOKEN + 100, reservedTo: TOKEN + 100 + 4 * BLOCK - 1 });
  });

  test("ends after 20 ms: the claim is released first, then the other callers request the next one", async () => {
    const waiting = callers(3);
    await world.runtime.advance(5);
    await grant();
    await world.runtime.advance(19);
    await leaseOf(waiting[0]).release();
    await world.runtime.advance(1);
    expect(states(waiting)).toEqual(["fulfilled", "fulfilled", "pending"]);
    const before = world.sent.length;
    await leaseOf(waiting[1]).release();
    await world.runtime.advance(0);
    expect(states(waiting)).toEqual(["fulfilled", "fulfilled", "pending"]);
    expect(world.sent.slice(before).map(({ verb }) => verb)).toEqual(["release", "acquire"]);
    await grant(undefined, TOKEN + 100);
    expect(leaseOf(waiting[2]).token).toBe(TOKEN + 100);
  });

  test.each([true, false])(
    "ends with the next grant if its loss went unnoticed, and the remaining callers go first (renewed: %s)",
    async (renew) => {
      const waiting = callers(3, { renew });
      await world.runtime.advance(5);
      await grant();
      await world.runtime.advance(1);
      waiting.push(...callers(1, { renew }));
      await world.runtime.advance(1);
      const { signal } = leaseOf(waiting[0]);
      // The claim was force-released, and that message is late.
      await grant(undefined, TOKEN + 100);
      expect(signal.reason).toMatchObject({ reason: "server-lost", token: TOKEN });
      for (const [at, caller] of waiting.slice(1).entries()) {
        expect(leaseOf(caller).token).toBe(TOKEN + 100 + at);
        await leaseOf(caller).release();
        await world.runtime.advance(0);
      }
      expect(new Set(world.sentOf("acquire").map(({ claim }) => claim?.owner)).size).toBe(2);
      await world.runtime.advance(60_000);
      expect(world.runtime.running()).toBe(0);
    },
  );

  test("serves only earlier callers, even if the holder it ends acquires again in its abort listener", async () => {
    const [last] = callers(1, { renew: false });
    await world.runtime.advance(5);
    await grant();
    await world.runtime.advance(1);
    const [early] = callers(1, { renew: false });
    await world.runtime.advance(1);
    const grantedMs = world.runtime.monotonicMs() - startMs;
    await world.runtime.advance(1);
    const [late] = callers(1, { renew: false });
    const again: Watched<Lease>[] = [];
    leaseOf(last).signal.addEventListener("abort", () => again.push(...callers(1, { renew: false })));
    await grant(grantedMs, TOKEN + 100);
    expect(states([early, late, ...again] as Watched<Lease>[])).toEqual(["fulfilled", "pending", "pending"]);
    await leaseOf(early).release();
    await world.runtime.advance(0);
    await grant(undefined, TOKEN + 200);
    expect(states([late, ...again] as Watched<Lease>[])).toEqual(["fulfilled", "pending"]);
  });

  test("reports an expired lease as expired if the next grant arrives first after a suspension of the host", async () => {
    const waiting = callers(2, { renew: false });
    await world.runtime.advance(5);
    await grant();
    await world.runtime.advance(1);
    callers(1, { renew: false });
    await world.runtime.advance(1);
    const { signal } = leaseOf(waiting[0]);
    world.runtime.stepWall(60_000);
    await grant(60_007, TOKEN + 100);
    expect(signal.reason).toMatchObject({ reason: "expired", token: TOKEN });
  });

  test("reports the loss of its last lease when the next grant arrives", async () => {
    const [last] = callers(1, { renew: false });
    await world.runtime.advance(5);
    await grant();
    await world.runtime.advance(1);
    const [late] = callers(1, { renew: false });
    await world.runtime.advance(1);
    await grant(undefined, TOKEN + 100);
    expect([leaseOf(last).signal.aborted, leaseOf(late).signal.aborted]).toEqual([true, false]);
  });

  test("ends when the server refuses the claim to one of its earlier leases", async () => {
    const waiting = callers(2);
    await world.runtime.advance(5);
    await grant();
    const refused = new Answer<"claimed">();
    world.answers.extend = () => refused.promise;
    const extending = leaseOf(waiting[0]).extend(30_000);
    extending.catch(() => {});
    await leaseOf(waiting[0]).release();
    await world.runtime.advance(0);
    world.answers.extend = async () => "claimed";
    refused.resolve("claimed");
    await expect(extending).rejects.toThrow(LeaseLostError);
    await world.runtime.advance(1);
    expect(leaseOf(waiting[1]).signal.aborted).toBe(true);
  });

  test("serves callers left over from the previous one first, even if the wall clock was set back", async () => {
    const waiting = callers(3);
    await world.runtime.advance(5);
    await grant();
    world.runtime.stepWall(-5_000);
    await world.runtime.advance(1);
    waiting.push(...callers(1));
    await world.runtime.advance(1);
    await grant(undefined, TOKEN + 100);
    expect(states(waiting)).toEqual(["fulfilled", "fulfilled", "pending", "pending"]);
    expect(world.sentOf("leave")).toEqual([]);
    await leaseOf(waiting[1]).release();
    await leaseOf(waiting[2]).release();
    await world.runtime.advance(0);
    expect(leaseOf(waiting[3]).token).toBe(TOKEN + 102);
  });

  test("ends when a lease was extended, so that a crash cannot block the others for longer", async () => {
    const waiting = callers(2);
    await world.runtime.advance(5);
    await grant();
    await leaseOf(waiting[0]).extend(60_000);
    await leaseOf(waiting[0]).release();
    await world.runtime.advance(0);
    expect(world.sentOf("release")).toHaveLength(1);
    expect(waiting[1]?.state).toBe("pending");
  });

  test.each(["forced", "reported by the server", "expired"])(
    "that loses its claim (%s) aborts the current lease, and the other callers queue again in front",
    async (how) => {
      const waiting = callers(3);
      await world.runtime.advance(5);
      await grant();
      const number = newest();
      const [later] = callers(1);
      await world.runtime.advance(0);
      await leaseOf(waiting[0]).release();
      await world.runtime.advance(0);
      const present = leaseOf(waiting[1]);
      const { signal } = present;
      world.answers.extend = () => (how === "expired" ? never() : Promise.resolve("claimed"));
      if (how === "forced") world.store.push(`-${number}`);
      await world.runtime.advance(how === "forced" ? 0 : how === "expired" ? 30_000 : 10_500);
      expect(signal.aborted).toBe(true);
      expect(signal.reason).toBeInstanceOf(LeaseLostError);
      expect(waiting[2]?.state).toBe("pending");
      await grant(undefined, TOKEN + 100);
      expect(leaseOf(waiting[2]).token).toBe(TOKEN + 100);
      expect(later?.state).toBe("pending");
    },
  );

  test("skips callers that aborted or timed out", async () => {
    const controller = new AbortController();
    const first = callers(1);
    const aborted = callers(1, { signal: controller.signal });
    const [timed] = callers(1, { waitMs: 8 });
    const last = callers(1);
    await world.runtime.advance(5);
    await grant();
    controller.abort("gone");
    await world.runtime.advance(5);
    expect(aborted[0]).toMatchObject({ state: "rejected", error: "gone" });
    expect(timed).toMatchObject({ state: "rejected", error: expect.any(AcquireTimeoutError) });
    await leaseOf(first[0]).release();
    await world.runtime.advance(0);
    expect(leaseOf(last[0]).token).toBe(TOKEN + 1);
    expect(world.sentOf("leave")).toEqual([]);
  });
});

describe("a shared claim", () => {
  test("is requested once for all callers that arrive while it waits", async () => {
    const waiting = callers(50);
    await world.runtime.advance(0);
    waiting.push(...callers(50));
    await world.runtime.advance(2_500);
    expect(new Set(world.sentOf("acquire").map(({ claim }) => claim?.owner)).size).toBe(1);
    expect(world.sentOf("acquire")).toHaveLength(2);
    expect(states(waiting).every((state) => state === "pending")).toBe(true);
  });

  test("fails all its callers if the store throws synchronously, and the next call requests again", async () => {
    world.answers.acquire = () => {
      throw new Error("not mine");
    };
    for (const requests of [1, 2]) {
      const waiting = callers(2);
      await world.runtime.advance(0);
      expect(waiting.map(({ error }) => String(error))).toEqual(["Error: not mine", "Error: not mine"]);
      expect(world.sentOf("acquire")).toHaveLength(requests);
    }
    expect(world.runtime.running(true)).toBe(0);
    taken();
    const [waiting] = callers(1);
    await world.runtime.advance(5);
    await grant();
    expect(waiting?.state).toBe("fulfilled");
  });

  test("leaves the queue only when its last caller aborts", async () => {
    const controllers = [new AbortController(), new AbortController()];
    const waiting = controllers.flatMap(({ signal }) => callers(1, { signal }));
    await world.runtime.advance(5);
    controllers[0]?.abort(1);
    await world.runtime.advance(0);
    expect(world.sentOf("leave")).toHaveLength(0);
    controllers[1]?.abort(2);
    await world.runtime.advance(0);
    expect(world.sentOf("leave")).toHaveLength(1);
    expect(waiting.map(({ error }) => error)).toEqual([1, 2]);
    await grant();
    expect(world.sentOf("leave")).toHaveLength(2);
    await world.runtime.advance(120_000);
    expect(world.runtime.running()).toBe(0);
  });

  test("is released if no caller was waiting at the time of the grant", async () => {
    const controller = new AbortController();
    callers(1, { signal: controller.signal });
    await world.runtime.advance(5);
    await world.runtime.advance(5);
    const [late] = callers(1);
    await world.runtime.advance(1);
    controller.abort();
    await grant(7);
    expect(late?.state).toBe("pending");
    expect(world.sentOf("leave")).toHaveLength(1);
    await grant(12, TOKEN + 100);
    expect(leaseOf(late).token).toBe(TOKEN + 100);
  });

  test("lets each caller time out at its own deadline with the current holder in the error", async () => {
    const holder = { owner: "somebody/1/30000/1", token: 5, leaseLeftMs: 9_000 };
    world.answers.inspect = async () => ({ ...NOBODY, holders: [holder] });
    const waiting = [...callers(1, { waitMs: 100 }), ...callers(1, { waitMs: 50 }), ...callers(1)];
    await world.runtime.advance(50);
    expect(states(waiting)).toEqual(["pending", "rejected", "pending"]);
    await world.runtime.advance(50);
    expect(states(waiting)).toEqual(["rejected", "rejected", "pending"]);
    for (const { error } of waiting.slice(0, 2)) expect(error).toMatchObject({ holder: { owner: holder.owner } });
    expect(world.sentOf("leave")).toEqual([]);
  });

  test("times out a caller in a batch whose first reply was the grant", async () => {
    world.answers.acquire = async () => ({ outcome: "granted", token: TOKEN });
    const waiting = [...callers(1), ...callers(1, { waitMs: 10_000 })];
    await world.runtime.advance(0);
    expect(states(waiting)).toEqual(["fulfilled", "pending"]);
    await world.runtime.advance(9_999);
    expect(states(waiting)).toEqual(["fulfilled", "pending"]);
    await world.runtime.advance(1);
    expect(waiting[1]?.error).toBeInstanceOf(AcquireTimeoutError);
  });

  test.each([300, 10_000])("fails after a wait of %i ms if the server does not reply", async (waitMs) => {
    world.answers.acquire = never;
    world.answers.leave = never;
    world.answers.inspect = never;
    const waiting = callers(3, { waitMs });
    await world.runtime.advance(waitMs - 1);
    expect(states(waiting)).toEqual(["pending", "pending", "pending"]);
    await world.runtime.advance(201);
    for (const { error } of waiting) expect(error).toBeInstanceOf(waitMs === 300 ? Error : StoreError);
    expect(states(waiting)).toEqual(["rejected", "rejected", "rejected"]);
  });

  test("is granted if the reply arrives shortly after its wait has ended", async () => {
    for (const answerMs of [100, 300]) {
      world = new ScriptedLock({ takesTurns: true });
      world.answers.acquire = () =>
        new Promise((resolve) => {
          world.runtime.startTimer(() => resolve({ outcome: "granted", token: TOKEN }), answerMs, true);
        });
      const [hasty] = callers(1, { waitMs: 30 });
      await world.runtime.advance(600);
      expect(hasty?.state).toBe(answerMs === 100 ? "fulfilled" : "rejected");
    }
  });

  test("fails all its callers on a permanent error", async () => {
    world.answers.acquire = () =>
      Promise.reject(
        new StoreError("scripted", { mayHaveRun: false, transient: false, cause: new Error("WRONGTYPE") }),
      );
    const waiting = callers(3);
    await world.runtime.advance(0);
    for (const { error } of waiting) expect(error).toBeInstanceOf(StoreError);
    taken();
    expect(states(callers(1))).toEqual(["pending"]);
  });

  test("is requested again after a failure and then serves all callers", async () => {
    world.answers.acquire = () => Promise.reject(lost(false));
    const waiting = callers(2, { waitMs: 60_000 });
    await world.runtime.advance(100);
    taken();
    await world.runtime.advance(1_000);
    await grant();
    await leaseOf(waiting[0]).release();
    await world.runtime.advance(0);
    expect(states(waiting)).toEqual(["fulfilled", "fulfilled"]);
  });
});

test("a single caller that is granted immediately sets no timer for its wait", async () => {
  world.answers.acquire = async () => ({ outcome: "granted", token: TOKEN });
  const lease = await world.lock.acquire();
  expect(world.runtime.running(true)).toBe(0);
  await lease.release();
  expect(world.sent.map(({ verb }) => verb)).toEqual(["acquire", "release"]);
});

test("a local queue is dropped once its label is unused, and kept while a caller waits", () => {
  const cohorts = new LocalQueues(world.session);
  const labelled = (label: string): ResolvedOptions => ({ ...DEFAULTS, signal: undefined, amount: 1, label });
  const idle = cohorts.of(world.protocol, labelled("order 0"));
  const busy = cohorts.of(world.protocol, labelled("order 1"));
  busy.join(world.protocol, labelled("order 1"), { held: () => {}, timedOut: () => {}, failed: () => {} });
  for (let order = 2; order < 20; order += 1) cohorts.of(world.protocol, labelled(`order ${order}`));
  expect(cohorts.of(world.protocol, labelled("order 1"))).toBe(busy);
  expect(cohorts.of(world.protocol, labelled("order 0"))).not.toBe(idle);
});

test("close ends the wait of callers in every place and refuses later ones", async () => {
  const waiting = callers(3);
  await world.runtime.advance(5);
  await grant();
  waiting.push(...callers(2));
  await world.runtime.advance(0);
  await world.session.close();
  expect(leaseOf(waiting[0]).signal.aborted).toBe(true);
  for (const { error } of waiting.slice(1)) expect(error).toBeInstanceOf(ClosedError);
  await expect(world.lock.acquire()).rejects.toThrow(ClosedError);
  expect(world.runtime.running()).toBe(0);
});

describe("a claim that keeps its place behind a pause", () => {
  const PAUSE = "pause/1000000/9000000000000/1/x/ops/why";
  let pauses: readonly string[];
  let seen: Answer<State>;

  beforeEach(async () => {
    pauses = [];
    seen = new Answer();
    const restMs = 30_000;
    world.answers.acquire = async () => ({ outcome: "waiting", restMs, nowUs: NOW_US, pauses });
    world.answers.inspect = () => seen.promise;
  });

  /** A caller that waited before the pause began and whose last reply reported the pause. */
  async function paused(): Promise<Watched<Lease>> {
    const [early] = callers(1);
    await world.runtime.advance(5);
    pauses = [PAUSE];
    world.store.reconnect("inbox");
    await world.runtime.advance(5);
    return early as Watched<Lease>;
  }

  const pause = { by: "ops", label: "why", sinceAtMs: 1_000_000, untilAtMs: undefined, owner: PAUSE };

  test("rejects only callers that arrive during the pause", async () => {
    const early = await paused();
    const [late] = callers(1);
    await world.runtime.advance(1);
    expect(late?.state).toBe("pending");
    seen.resolve({ ...NOBODY, pause });
    await world.runtime.advance(1);
    expect(late?.error).toBeInstanceOf(PausedError);
    await grant();
    expect(early.state).toBe("fulfilled");
  });

  test("keeps the order of callers that arrived before it was known that the pause had ended", async () => {
    const early = await paused();
    const [first] = callers(1);
    pauses = [];
    world.store.reconnect("inbox");
    await world.runtime.advance(1);
    const [second] = callers(1);
    await world.runtime.advance(1);
    seen.resolve(NOBODY);
    await world.runtime.advance(1);
    await grant();
    await leaseOf(early).release();
    await world.runtime.advance(0);
    expect(states([first, second] as Watched<Lease>[])).toEqual(["fulfilled", "pending"]);
  });

  test("honors the deadlines and signals of callers while it checks the pause, and leaves after the last", async () => {
    const early = new AbortController();
    const [waiting] = callers(1, { signal: early.signal });
    await world.runtime.advance(5);
    pauses = [PAUSE];
    world.store.reconnect("inbox");
    await world.runtime.advance(5);
    const late = new AbortController();
    const [aborted, dated, refused] = [
      ...callers(1, { signal: late.signal }),
      ...callers(1, { waitMs: 300 }),
      ...callers(1),
    ];
    late.abort("no longer");
    await world.runtime.advance(0);
    expect(aborted?.error).toBe("no longer");
    early.abort("not either");
    await world.runtime.advance(500);
    expect(waiting?.error).toBe("not either");
    expect(dated?.error).toBeInstanceOf(AcquireTimeoutError);
    expect(world.sentOf("leave")).toEqual([]);
    seen.resolve({ ...NOBODY, pause });
    await world.runtime.advance(1);
    expect(refused?.error).toBeInstanceOf(PausedError);
    expect(world.sentOf("leave")).toHaveLength(1);
    await world.runtime.advance(60_000);
    expect(world.runtime.running()).toBe(0);
  });
});

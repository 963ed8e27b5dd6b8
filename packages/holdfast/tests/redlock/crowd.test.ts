/** Many processes that compete for one lock on a network with varying delays. */
import { afterEach, beforeAll, expect, test } from "vitest";
import type { Holdfast } from "../../src/index.js";
import { watch } from "../unit/scripted-lock.js";
import { randomFrom, ready, settle, VirtualQuorum } from "./virtual-quorum.js";

const NAME = "a";
const PROCESSES = 30;
const CALLERS_EACH = 2;
const SLOWEST_MS = 20;
const MOST_SECONDS = 60;

let quorum: VirtualQuorum;

beforeAll(ready);
afterEach(() => quorum.close());

/** Number of attempts among those requests that went to more than one server. */
function wideAttempts(requests: readonly { readonly owner: string }[]): number {
  const servers = new Map<string, number>();
  for (const { owner } of requests) servers.set(owner, (servers.get(owner) ?? 0) + 1);
  return [...servers.values()].filter((count) => count > 1).length;
}

async function begin(size: number, travelMs: () => number): Promise<Holdfast[]> {
  quorum = new VirtualQuorum(size);
  quorum.runtime.random = randomFrom(size);
  quorum.travel = () => ({ thereMs: travelMs(), backMs: travelMs() });
  return Array.from({ length: PROCESSES }, () => quorum.client());
}

test.each([3, 5])(
  "with %i servers, 30 processes contend at one server first and rarely split the votes",
  async (size) => {
    const random = randomFrom(size);
    const processes = await begin(size, () => 1 + random() * SLOWEST_MS);
    const all = PROCESSES * CALLERS_EACH;
    let served = 0;
    let holding = 0;
    let half = 0;
    const turn = async (holdfast: Holdfast): Promise<void> => {
      const lease = await holdfast.redlock(NAME).acquire({ waitMs: Infinity });
      holding += 1;
      expect(holding).toBe(1);
      served += 1;
      if (served === all / 2) half = quorum.sent("acquire").length;
      holding -= 1;
      await lease.release();
    };
    const done = watch(
      Promise.all(processes.flatMap((each) => Array.from({ length: CALLERS_EACH }, () => turn(each)))),
    );
    for (let second = 0; second < MOST_SECONDS && done.state === "pending"; second += 1) {
      await quorum.runtime.advance(1_000);
      await settle();
    }
    expect(done.state).toBe("fulfilled");
    // Once the processes know of the contention: one winning attempt, and occasionally another one that a timer starts.
    const requests = quorum.sent("acquire").slice(half);
    expect(wideAttempts(requests) / (all / 2)).toBeLessThan(1.5);
  },
  60_000,
);

test("a stale grant at the first server does not keep a waiter from a free majority", async () => {
  const [first, second] = await begin(5, () => 1);
  const holding = first?.redlock(NAME).acquire();
  await quorum.runtime.advance(20);
  const waiting = watch(second?.redlock(NAME).acquire({ waitMs: Infinity }) ?? Promise.reject(new Error("two")));
  await quorum.runtime.advance(100);
  const lease = await holding;
  void lease?.release();
  // The waiter receives only the release message of server 0, and tries that server first.
  quorum.isHeard = (server) => server === 0;
  await quorum.occupy(0, NAME, 60_000);
  expect(waiting.state).toBe("pending");
  await quorum.runtime.advance(2_100);
  expect(waiting.state).toBe("fulfilled");
});

test("a waiter skips the first server if that server hangs", async () => {
  const [first, second] = await begin(5, () => 1);
  const holding = first?.redlock(NAME).acquire();
  await quorum.runtime.advance(20);
  const waiting = watch(second?.redlock(NAME).acquire({ waitMs: Infinity }) ?? Promise.reject(new Error("two")));
  await quorum.runtime.advance(100);
  const lease = await holding;
  quorum.travel = ({ server, verb }) => (server === 0 && verb === "acquire" ? { thereMs: Infinity } : { thereMs: 1 });
  void lease?.release();
  await quorum.runtime.advance(150);
  expect(waiting.state).toBe("fulfilled");
});

test.each([1, 2, 3, 4, 5])(
  "two clients with opposite server orders do not keep splitting the votes while a server is down (seed %i)",
  async (seed) => {
    const halfMs = 50;
    quorum = new VirtualQuorum(3);
    quorum.runtime.random = randomFrom(seed);
    quorum.travel = ({ server }) => (server === 1 ? { refused: "away" } : { thereMs: halfMs, backMs: halfMs });
    const holding = quorum.client().redlock(NAME).acquire();
    await quorum.runtime.advance(1_000);
    const waiting = [quorum.client(), quorum.reversed()].map((each) =>
      watch(each.redlock(NAME).acquire({ waitMs: Infinity })),
    );
    await quorum.runtime.advance(7_000 + 37 * seed);
    void (await holding).release();
    await quorum.runtime.advance(2_000);
    expect(waiting.filter(({ state }) => state === "fulfilled")).toHaveLength(1);
  },
);

test("waiters that are about to time out do not delay a waiter with more time left", async () => {
  const [holder, crowd, patient] = await begin(3, () => 10);
  if (holder === undefined || crowd === undefined || patient === undefined) throw new Error("there are more");
  const holding = holder.redlock(NAME).acquire();
  await quorum.runtime.advance(100);
  const lease = await holding;
  // They time out one after the other, 5 ms apart, from 5 s on.
  const hasty = Array.from({ length: 300 }, (_, i) => watch(crowd.redlock(NAME).acquire({ waitMs: 5_000 + 5 * i })));
  await quorum.runtime.advance(4_900);
  const waiting = watch(patient.redlock(NAME).acquire({ waitMs: Infinity }));
  await quorum.runtime.advance(150);
  const from = quorum.sent("acquire").length;
  void lease.release();
  await quorum.runtime.advance(600);
  expect(hasty.some(({ state }) => state === "pending")).toBe(true);
  expect(waiting.state).toBe("fulfilled");
  // The patient waiter, and the hasty waiters whose attempts were in flight.
  expect(
    new Set(
      quorum
        .sent("acquire")
        .slice(from)
        .map(({ owner }) => owner),
    ).size,
  ).toBeLessThan(10);
});

test("no client waits 6 s while four clients acquire repeatedly", async () => {
  const random = randomFrom(2);
  quorum = new VirtualQuorum(3);
  const { runtime } = quorum;
  runtime.random = random;
  quorum.travel = () => ({ thereMs: 2 + random(), backMs: 2 + random() });
  const passes = (ms: number): Promise<void> => new Promise((resolve) => runtime.startTimer(resolve, ms, true));
  const waits: number[] = [];
  let isOver = false;
  const turns = async (holdfast: Holdfast): Promise<void> => {
    while (!isOver) {
      const askedAtMs = runtime.monotonicMs();
      const lease = await holdfast.redlock(NAME).acquire({ waitMs: Infinity });
      waits.push(runtime.monotonicMs() - askedAtMs);
      await passes(50);
      await lease.release();
      await passes(10);
    }
  };
  const done = watch(Promise.all(Array.from({ length: 4 }, () => turns(quorum.client()))));
  for (let second = 0; second < 30; second += 1) await runtime.advance(1_000);
  isOver = true;
  for (let second = 0; second < 20 && done.state === "pending"; second += 1) await runtime.advance(1_000);
  expect(done.state).toBe("fulfilled");
  // About 16 turns run per second.
  expect(Math.max(...waits)).toBeLessThan(6_000);
});
test("a stale grant at the first server does not block a waiter whose subscriptions keep reconnecting", async () => {
  const [first, second] = await begin(5, () => 1);
  const holding = first?.redlock(NAME).acquire();
  await quorum.runtime.advance(20);
  const waiting = watch(second?.redlock(NAME).acquire({ waitMs: Infinity }) ?? Promise.reject(new Error("two")));
  await quorum.runtime.advance(100);
  quorum.isHeard = () => false;
  void (await holding)?.release();
  await quorum.occupy(0, NAME, 60_000);
  for (let count = 0; count < 10; count += 1) {
    quorum.flap();
    await quorum.runtime.advance(500);
  }
  expect(waiting.state).toBe("fulfilled");
});

test("attempts that fail after the first server do not trigger each other's retries", async () => {
  const processes = (await begin(3, () => 1)).slice(0, 4);
  await quorum.occupy(1, NAME, 600_000);
  await quorum.occupy(2, NAME, 600_000);
  const waiting = processes.map((each) => watch(each.redlock(NAME).acquire({ waitMs: Infinity })));
  await quorum.runtime.advance(5_000);
  const before = quorum.sent("acquire").length;
  await quorum.runtime.advance(20_000);
  // Nothing changes, so each waiter tries all three servers every two seconds, and occasionally some in between.
  expect(quorum.sent("acquire").length - before).toBeLessThan(3 * 4 * 10 * 3);
  for (const { state } of waiting) expect(state).toBe("pending");
});

test.each([1, 20])(
  "a client that reacquires immediately, %i ms away, does not starve the other client",
  async (travelMs) => {
    const both = await begin(3, () => travelMs);
    const turns: [number, number] = [0, 0];
    let isOver = false;
    const loop = async (at: 0 | 1): Promise<void> => {
      const lock = both[at]?.redlock(NAME);
      while (!isOver) {
        await lock?.run(() => {});
        turns[at] += 1;
      }
    };
    const done = watch(Promise.all([loop(0), loop(1)]));
    while (turns[0] + turns[1] < 200) {
      await quorum.runtime.advance(10);
      await settle();
    }
    isOver = true;
    await quorum.runtime.advance(5_000);
    expect(done.state).toBe("fulfilled");
    const [least = 0, most = 0] = turns.toSorted((a, b) => a - b);
    expect(most / least).toBeLessThan(2);
  },
);

test("a wait ends in a timeout if only servers that do not reply can tell whether the lock is held", async () => {
  quorum = new VirtualQuorum(3);
  quorum.travel = ({ server }) => (server === 2 ? { thereMs: Infinity } : { thereMs: 1, backMs: 1 });
  const client = quorum.client();
  await quorum.occupy(0, NAME, 60_000);
  const waiting = watch(client.redlock(NAME).acquire({ waitMs: 300 }));
  const looking = watch(client.redlock(NAME).inspect());
  await quorum.runtime.advance(10_000);
  expect(waiting.error).toMatchObject({ name: "AcquireTimeoutError", holder: undefined });
  expect(looking.error).toMatchObject({ name: "QuorumError", mayHaveRun: false });
});

test("an attempt in progress is not mistaken for a holder while a server does not reply", async () => {
  quorum = new VirtualQuorum(3);
  quorum.travel = ({ server }) => (server === 2 ? { thereMs: Infinity } : { thereMs: 1, backMs: 1 });
  const client = quorum.client();
  // One server has the attempt of another client, which gives up while the inspection waits for the silent server.
  await quorum.occupy(0, NAME, 50);
  const looking = watch(client.redlock(NAME).inspect());
  await quorum.runtime.advance(10_000);
  expect(looking.error).toBeUndefined();
  expect(looking.value).toMatchObject({ holders: [] });
});

test("callers of one process that time out together inspect each server once", async () => {
  quorum = new VirtualQuorum(3);
  quorum.travel = () => ({ thereMs: 1, backMs: 1 });
  const [holder, waiter] = [quorum.client(), quorum.client()];
  const held = watch(holder.redlock(NAME).acquire());
  await quorum.runtime.advance(100);
  expect(held.state).toBe("fulfilled");
  const waiting = Array.from({ length: 50 }, () => watch(waiter.redlock(NAME).acquire({ waitMs: 300 })));
  await quorum.runtime.advance(1_000);
  for (const { error } of waiting) expect(error).toMatchObject({ holder: { owner: held.value?.owner }, isOwn: false });
  expect(quorum.sent("inspect")).toHaveLength(3);
});

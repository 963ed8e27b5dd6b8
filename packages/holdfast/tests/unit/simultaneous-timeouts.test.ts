/**
 * Thousands of callers of one process that time out together: how many requests they cause and what their errors say.
 */
import { beforeEach, describe, expect, test, vi } from "vitest";
import { AcquireTimeoutError, PausedError, StoreError } from "../../src/core/errors.js";
import type { Lease } from "../../src/core/lease.js";
import type { State } from "../../src/core/protocol.js";
import { Answer, lost, NOBODY, NOW_US, never, ScriptedLock, type Watched, watch } from "./scripted-lock.js";

const CROWD = 5_000;
/** How long the server takes to reply to an inspect request, in ms. */
const ANSWER_MS = 1;
const HOLDER = { owner: "other-client/3/30000/1/report", token: NOW_US, leaseLeftMs: 12_000 };
const STATE: State = { ...NOBODY, holders: [HOLDER], token: NOW_US, waiterCount: 7, ahead: 2 };
/** The maximum number of leave requests in flight. */
const DEPARTURES = 250;
/** More callers than leave requests may be in flight. */
const GROUP = 600;

let world: ScriptedLock;
let recordsRead: number;
beforeEach(() => {
  setUp({ takesTurns: true });
});

function setUp(options: ConstructorParameters<typeof ScriptedLock>[0]): void {
  world = new ScriptedLock(options);
  world.answers.acquire = async ({ enqueue }) => ({
    outcome: enqueue === true ? "waiting" : "refused",
    restMs: 30_000,
    nowUs: NOW_US,
  });
  answerInspections(() => STATE);
  recordsRead = 0;
  vi.spyOn(world.session.records, "read").mockImplementation(async () => {
    recordsRead += 1;
    return { host: "vm-1", pid: 42, clientName: undefined, protocol: 1 };
  });
}

/** The server takes its state from `look` when it receives the request. Its reply takes a moment. */
function answerInspections(look: () => State): void {
  world.answers.inspect = () => {
    const seen = structuredClone(look());
    return new Promise((resolve) => world.runtime.startTimer(() => resolve(seen), ANSWER_MS, false));
  };
}

function callers(count: number, options: Parameters<typeof world.lock.acquire>[0]): Watched<Lease>[] {
  return Array.from({ length: count }, () => watch(world.lock.acquire(options)));
}

/** The AcquireTimeoutError of each caller. Throws if a caller failed with anything else. */
function timeouts(watched: readonly Watched<Lease>[]): AcquireTimeoutError[] {
  return watched.map(({ error }) => {
    if (error instanceof AcquireTimeoutError) return error;
    throw new Error("not an AcquireTimeoutError", { cause: error });
  });
}

describe("thousands of callers that share a claim", () => {
  test("cause one inspect request and one record read, and every error names the holder", async () => {
    const waiting = callers(CROWD, { waitMs: 300 });
    await world.runtime.advance(300 + ANSWER_MS);
    const errors = timeouts(waiting);
    expect(world.sentOf("inspect")).toHaveLength(1);
    expect(recordsRead).toBe(1);
    expect(world.sentOf("leave")).toHaveLength(1);
    expect(new Set(errors).size).toBe(CROWD);
    for (const error of errors) {
      expect(error.holder).toMatchObject({ label: "report", token: NOW_US, host: "vm-1", pid: 42 });
      expect(error.waitersAhead).toBe(2);
    }
  });

  test("and time out later cause a second inspect request that returns the current state", async () => {
    const early = callers(3, { waitMs: 300 });
    const late = callers(3, { waitMs: 400 });
    await world.runtime.advance(300);
    answerInspections(() => ({ ...STATE, ahead: 1 }));
    await world.runtime.advance(100 + ANSWER_MS);
    expect(world.sentOf("inspect")).toHaveLength(2);
    expect(timeouts(early).map(({ waitersAhead }) => waitersAhead)).toEqual([2, 2, 2]);
    expect(timeouts(late).map(({ waitersAhead }) => waitersAhead)).toEqual([1, 1, 1]);
  });

  test("and arrive during a pause cause two inspect requests, and all are rejected", async () => {
    const pause = { owner: "pause", label: "why", by: "ops", sinceAtMs: 1, untilAtMs: undefined };
    const [first] = callers(1, { waitMs: 60_000 });
    await world.runtime.advance(5);
    world.answers.acquire = async () => ({
      outcome: "waiting",
      restMs: 30_000,
      nowUs: NOW_US,
      pauses: ["pause/1/0/1000000000/req/ops/why"],
    });
    await world.runtime.advance(6_000);
    const seen = new Answer<State>();
    world.answers.inspect = () => seen.promise;
    const late = callers(CROWD, { waitMs: 60_000 });
    world.answers.inspect = async () => ({ ...STATE, pause });
    seen.resolve({ ...STATE, pause });
    await world.runtime.advance(1);
    expect(world.sentOf("inspect")).toHaveLength(2);
    expect(late.every(({ error }) => error instanceof PausedError)).toBe(true);
    expect(first?.state).toBe("pending");
  });
});

describe("a caller that arrives while others are being rejected because of a pause", () => {
  test("is not rejected by a reply older than its call", async () => {
    const pause = { owner: "pause", label: "why", by: "ops", sinceAtMs: 1, untilAtMs: undefined };
    callers(1, { waitMs: 60_000 });
    await world.runtime.advance(5);
    world.answers.acquire = async () => ({
      outcome: "waiting",
      restMs: 30_000,
      nowUs: NOW_US,
      pauses: ["pause/1/0/1000000000/req/ops/why"],
    });
    await world.runtime.advance(6_000);
    const seen = new Answer<State>();
    world.answers.inspect = () => seen.promise;
    const [before] = callers(1, { waitMs: 60_000 });
    // The pause ends here. The next caller knows that it has ended.
    world.answers.inspect = async () => STATE;
    const [after] = callers(1, { waitMs: 60_000 });
    seen.resolve({ ...STATE, pause });
    await world.runtime.advance(1);
    expect([before?.state, after?.state]).toEqual(["rejected", "pending"]);
  });
});

describe("thousands of callers with a claim each", () => {
  beforeEach(() => {
    setUp({});
  });

  test("cause one inspect request and one record read, and one leave request each", async () => {
    const waiting = callers(CROWD, { waitMs: 300 });
    await world.runtime.advance(300 + ANSWER_MS);
    const errors = timeouts(waiting);
    expect(world.sentOf("inspect")).toHaveLength(1);
    expect(recordsRead).toBe(1);
    expect(new Set(world.sentOf("leave").map(({ claim }) => claim?.owner)).size).toBe(CROWD);
    expect(world.sentOf("leave")).toHaveLength(CROWD);
    for (const { holder } of errors) expect(holder).toMatchObject({ label: "report", pid: 42 });
  });

  test("each get the number of waiters ahead if the reply lists their claim", async () => {
    answerInspections(() => {
      const waiters = ["other/1/30000/1", ...world.sentOf("acquire").map(({ claim }) => claim?.owner ?? "")];
      return { ...STATE, waiters: [...new Set(waiters)].slice(0, 4), waiterCount: 6, ahead: 1 };
    });
    const waiting = callers(5, { waitMs: 300 });
    await world.runtime.advance(300 + ANSWER_MS);
    const ahead = timeouts(waiting).map(({ waitersAhead }) => waitersAhead);
    // Six waiters are in the queue, and the reply lists four of them.
    expect(ahead).toEqual([1, 2, 3, undefined, undefined]);
  });

  test("send a limited number of leave requests at a time, the rest as replies arrive", async () => {
    const left: Answer<void>[] = [];
    world.answers.leave = () => {
      const answer = new Answer<void>();
      left.push(answer);
      return answer.promise;
    };
    const waiting = callers(GROUP, { waitMs: 300 });
    await world.runtime.advance(300);
    expect(left).toHaveLength(DEPARTURES);
    for (const answer of left.slice(0, 10)) answer.resolve();
    await world.runtime.advance(ANSWER_MS);
    expect(left).toHaveLength(DEPARTURES + 10);
    expect(waiting.map(({ state }) => state).filter((state) => state === "rejected")).toHaveLength(10);
    for (const answer of left) {
      answer.resolve();
      if (left.length < GROUP) await world.runtime.advance(0);
    }
    await world.runtime.advance(ANSWER_MS);
    expect(left).toHaveLength(GROUP);
    timeouts(waiting);
    expect(world.runtime.running(true)).toBe(0);
  });

  test("all fail at the same time if the server does not reply", async () => {
    const waiting = callers(GROUP, { waitMs: 300 });
    await world.runtime.advance(10);
    world.answers.leave = never;
    world.answers.inspect = never;
    await world.runtime.advance(290 + 200);
    expect(waiting.every(({ error }) => error instanceof StoreError)).toBe(true);
    // Each claim still leaves the queue once the server replies again.
    world.answers.leave = async () => {};
    await world.runtime.advance(200_000);
    expect(new Set(world.sentOf("leave").map(({ claim }) => claim?.owner)).size).toBe(GROUP);
    expect(world.runtime.running()).toBe(0);
  });
});

describe("callers that do not wait", () => {
  beforeEach(() => {
    setUp({});
  });

  test("and are refused together share one inspect request, sent after all of their calls", async () => {
    const answers: Answer<Awaited<ReturnType<typeof world.answers.acquire>>>[] = [];
    world.answers.acquire = () => {
      const answer = new Answer<Awaited<ReturnType<typeof world.answers.acquire>>>();
      answers.push(answer);
      return answer.promise;
    };
    const refused = callers(CROWD, { waitMs: 0 });
    await world.runtime.advance(1);
    for (const answer of answers) answer.resolve({ outcome: "refused", restMs: 30_000, nowUs: NOW_US });
    await world.runtime.advance(ANSWER_MS);
    for (const { holder, waitersAhead } of timeouts(refused)) {
      expect(holder).toMatchObject({ label: "report", pid: 42 });
      expect(waitersAhead).toBe(STATE.ahead);
    }
    expect(world.sentOf("inspect")).toHaveLength(1);
    expect(recordsRead).toBe(1);
  });

  test("do not get a state older than their call", async () => {
    const seen = new Answer<State>();
    world.answers.inspect = () => seen.promise;
    const [early] = callers(1, { waitMs: 0 });
    await world.runtime.advance(10);
    // The holder is force-released here, and the next caller knows that.
    world.answers.inspect = async () => ({ ...STATE, holders: [] });
    const [late] = callers(1, { waitMs: 0 });
    await world.runtime.advance(1);
    seen.resolve(STATE);
    await world.runtime.advance(1);
    expect(timeouts([early, late] as Watched<Lease>[]).map(({ holder }) => holder?.label)).toEqual([
      "report",
      undefined,
    ]);
  });

  test("share the error of the failed inspect request", async () => {
    const cause = lost();
    world.answers.inspect = () => Promise.reject(cause);
    const refused = callers(3, { waitMs: 0 });
    await world.runtime.advance(1);
    for (const error of timeouts(refused)) expect(error).toMatchObject({ holder: undefined, cause });
  });
});

test("close waits for one timeout, not one per lock, if the server does not reply", async () => {
  setUp({ commandTimeoutMs: 2_000 });
  world.answers.acquire = async () => ({ outcome: "granted", token: 7 });
  const granted = callers(2_000, {});
  await world.runtime.advance(0);
  expect(granted.every(({ state }) => state === "fulfilled")).toBe(true);
  let locks = 0;
  const newKey = (): string => {
    locks += 1;
    return `lock ${locks}`;
  };
  Object.defineProperty(world.protocol, "key", { get: newKey });
  world.answers.leave = never;
  const closing = watch(world.session.close());
  await world.runtime.advance(2_500);
  expect(closing.state).toBe("fulfilled");
});

/** Echoes: how a client detects that messages no longer reach it, and how it reacts. */
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { beforeEach, expect, onTestFinished, test } from "vitest";
import type { InboxEvent } from "../../src/core/events.js";
import type { Echo } from "../../src/core/inbox-check.js";
import { lost, NOW_US, ScriptedLock, watch } from "./scripted-lock.js";

const FOREVER = { waitMs: Infinity, leaseMs: 600_000 };

let world: ScriptedLock;
/** When each echo was sent, in ms after the start of the test. */
let echoes: number[];
let numbers: number[];
let reopened: number[];
let warned: string[];
/** The outcome of an echo. Replaced by tests. */
let fate: () => Promise<"arrives" | "is lost" | "uncounted">;
let startMs: number;

function newWorld(options: { readonly reopens?: boolean; readonly isCluster?: boolean } = {}): void {
  const { reopens = true, isCluster = false } = options;
  const echo: Echo = {
    async send({ number }) {
      echoes.push(sinceStart());
      numbers.push(number);
      const outcome = await fate();
      if (outcome === "arrives") world.store.push(`=${number}`);
      return outcome !== "uncounted";
    },
    onDeaf: (connection) => warned.push(connection),
  };
  world = new ScriptedLock({ echo, isCluster });
  world.answers.acquire = async () => ({ outcome: "waiting", restMs: -1, nowUs: NOW_US });
  if (reopens) world.store.reopen = async () => void reopened.push(sinceStart());
  startMs = world.runtime.monotonicMs();
}

beforeEach(() => {
  [echoes, numbers, reopened, warned] = [[], [], [], []];
  fate = async () => "arrives";
  newWorld();
});

function sinceStart(): number {
  return world.runtime.monotonicMs() - startMs;
}

/** A client whose inbox has been open for so long that the next waiter must check it. */
async function idle(): Promise<void> {
  world.answers.acquire = async () => ({ outcome: "granted", token: 7 });
  await (await world.lock.acquire(FOREVER)).release();
  world.answers.acquire = async () => ({ outcome: "waiting", restMs: -1, nowUs: NOW_US });
  await world.runtime.advance(10_000);
  world.sent.length = 0;
}

test("a client without waiters sends no echo, however long it holds a lock", async () => {
  world.answers.acquire = async () => ({ outcome: "granted", token: 7 });
  const lease = await world.lock.acquire(FOREVER);
  await world.runtime.advance(300_000);
  await lease.release();
  await world.runtime.advance(300_000);
  expect(echoes).toEqual([]);
});

test("a waiter whose echoes arrive causes about 20 of them a minute, no reopen and no warning", async () => {
  watch(world.lock.acquire(FOREVER));
  await world.runtime.advance(60_000);
  expect(echoes.length).toBeGreaterThanOrEqual(15);
  expect(echoes.length).toBeLessThanOrEqual(20);
  expect([reopened, warned]).toEqual([[], []]);
});

test("many waiters share the echoes", async () => {
  for (let count = 0; count < 50; count += 1) {
    watch(world.lock.acquire(FOREVER));
    await world.runtime.advance(100);
  }
  await world.runtime.advance(60_000);
  expect(echoes.length).toBeLessThanOrEqual(26);
});

test("any message counts as an echo", async () => {
  watch(world.lock.acquire(FOREVER));
  for (let second = 0; second < 60; second += 1) {
    await world.runtime.advance(1_000);
    world.store.push("~999");
  }
  expect(echoes).toEqual([]);
});

test("the first waiter after an idle period sends an echo in parallel with its wait", async () => {
  await idle();
  const idleMs = sinceStart();
  fate = () => new Promise(() => {});
  const waiting = watch(world.lock.acquire(FOREVER));
  await world.runtime.advance(1);
  expect(echoes).toEqual([idleMs]);
  world.store.push(`+${world.lastNumber} 8 ${NOW_US + 1_000}`);
  await world.runtime.advance(1);
  expect(waiting.state).toBe("fulfilled");
});

test("the first wait after a host suspension sends an echo, even if the monotonic clock stopped", async () => {
  world.answers.acquire = async () => ({ outcome: "granted", token: 7 });
  await (await world.lock.acquire(FOREVER)).release();
  world.answers.acquire = async () => ({ outcome: "waiting", restMs: -1, nowUs: NOW_US });
  world.runtime.stepWall(600_000);
  watch(world.lock.acquire(FOREVER));
  await world.runtime.advance(1);
  expect(echoes.length).toBe(1);
});

test.each(["is lost", "uncounted"] as const)("an echo that %s replaces the connection once", async (what) => {
  await idle();
  fate = async () => (reopened.length === 0 ? what : "arrives");
  const from = sinceStart();
  watch(world.lock.acquire(FOREVER));
  await world.runtime.advance(60_000);
  expect(reopened.length).toBe(1);
  expect((reopened[0] ?? 0) - from).toBeLessThan(1_500);
  expect(warned).toEqual([]);
  expect(world.sentOf("acquire").length, "it does not poll once it hears again").toBeLessThan(40);
});

test("while echoes are lost, the client reconnects at most every 15 s, polls, and warns once", async () => {
  await idle();
  fate = async () => "is lost";
  watch(world.lock.acquire(FOREVER));
  await world.runtime.advance(90_000);
  expect(reopened.length).toBeGreaterThanOrEqual(4);
  for (const [i, atMs] of reopened.entries()) {
    if (i > 0) expect(atMs - (reopened[i - 1] ?? 0)).toBeGreaterThanOrEqual(15_000);
  }
  expect(warned.length).toBe(1);
  const asked = world.timesOf("acquire", startMs);
  const pauses = asked.slice(20).map((atMs, i) => atMs - (asked[i + 19] ?? 0));
  expect(Math.max(...pauses)).toBeLessThanOrEqual(500);
  expect(Math.min(...pauses)).toBeGreaterThanOrEqual(10);
});

test("a store that cannot reconnect polls and warns, and stops polling when echoes arrive again", async () => {
  newWorld({ reopens: false });
  await idle();
  const events: InboxEvent[] = [];
  const onEvent = (event: unknown): void => void events.push(event as InboxEvent);
  subscribe("holdfast:inbox", onEvent);
  onTestFinished(() => void unsubscribe("holdfast:inbox", onEvent));
  fate = async () => "is lost";
  watch(world.lock.acquire(FOREVER));
  await world.runtime.advance(20_000);
  expect(warned.length).toBe(1);
  const polled = world.sentOf("acquire").length;
  expect(polled).toBeGreaterThan(35);
  fate = async () => "arrives";
  await world.runtime.advance(6_000);
  const asked = world.sentOf("acquire").length;
  await world.runtime.advance(60_000);
  expect(world.sentOf("acquire").length - asked).toBeLessThan(25);
  expect(events.map(({ state }) => state)).toEqual(["deaf", "hears"]);
  expect(events[1]?.deafMs).toBeGreaterThan(15_000);
  fate = async () => "is lost";
  await world.runtime.advance(20_000);
  expect(warned.length, "one more deaf period").toBe(2);
});

test("a deaf client finds its grant with the next poll", async () => {
  newWorld({ reopens: false });
  await idle();
  fate = async () => "is lost";
  const waiting = watch(world.lock.acquire(FOREVER));
  await world.runtime.advance(10_000);
  world.answers.acquire = async () => ({ outcome: "granted", token: 8 });
  await world.runtime.advance(500);
  expect(waiting.state).toBe("fulfilled");
});

test("an echo request that fails or has no reply does not count as a lost echo", async () => {
  await idle();
  fate = () => Promise.reject(lost());
  watch(world.lock.acquire(FOREVER));
  await world.runtime.advance(60_000);
  expect(echoes.length).toBeGreaterThan(5);
  fate = () => new Promise(() => {});
  await world.runtime.advance(60_000);
  expect([reopened, warned]).toEqual([[], []]);
});

test("a server that stalls for 2 s causes no reconnect", async () => {
  await idle();
  fate = async () => {
    await new Promise<void>((resolve) => void world.runtime.startTimer(resolve, 2_000, false));
    return "arrives";
  };
  watch(world.lock.acquire(FOREVER));
  await world.runtime.advance(10_000);
  expect(reopened).toEqual([]);
});

test("an echo that arrives before the reply to its request counts", async () => {
  await idle();
  fate = async () => {
    world.store.push("=1");
    await new Promise<void>((resolve) => void world.runtime.startTimer(resolve, 2_000, false));
    return "is lost";
  };
  watch(world.lock.acquire(FOREVER));
  await world.runtime.advance(3_500);
  expect(reopened).toEqual([]);
});

test("a process that was frozen waits for the echo again", async () => {
  await idle();
  fate = async () => "is lost";
  watch(world.lock.acquire(FOREVER));
  await world.runtime.advance(500);
  world.runtime.block(5_000);
  await world.runtime.advance(900);
  expect(reopened).toEqual([]);
  world.store.push("=1");
  await world.runtime.advance(2_000);
  expect(reopened).toEqual([]);
});

test("a suspended host waits for the echo again, even if its timer was on time", async () => {
  await idle();
  fate = async () => "is lost";
  watch(world.lock.acquire(FOREVER));
  await world.runtime.advance(500);
  world.runtime.stepWall(60_000);
  await world.runtime.advance(900);
  world.store.push("=1");
  await world.runtime.advance(1_000);
  expect(reopened).toEqual([]);
});

test("a grant found by a re-check starts an inbox check, even if no caller waits anymore", async () => {
  const waiting = watch(world.lock.acquire(FOREVER));
  await world.runtime.advance(2_000);
  // Without this recent message, the elapsed time alone would start a check.
  world.store.push("~999");
  fate = async () => "is lost";
  world.answers.acquire = async () => ({ outcome: "granted", token: 8 });
  await world.runtime.advance(1_100);
  expect(waiting.state).toBe("fulfilled");
  expect(echoes.length).toBe(1);
  await world.runtime.advance(1_100);
  expect(reopened.length).toBe(1);
});

test("a grant found after a reconnect does not start a check", async () => {
  const waiting = watch(world.lock.acquire(FOREVER));
  await world.runtime.advance(2_000);
  world.answers.acquire = async () => ({ outcome: "granted", token: 8 });
  world.store.reconnect("inbox");
  await world.runtime.advance(100);
  expect(waiting.state).toBe("fulfilled");
  expect(echoes).toEqual([]);
});

test("an echo has a number that no claim has, because a cluster sends hints with that number", async () => {
  await idle();
  watch(world.lock.acquire(FOREVER));
  await world.runtime.advance(20_000);
  watch(world.lock.acquire(FOREVER));
  await world.runtime.advance(20_000);
  const claims = new Set(world.sentOf("acquire").map(({ claim }) => claim?.number));
  expect(claims.size).toBe(2);
  expect(numbers.length).toBeGreaterThan(3);
  expect(numbers.filter((number) => claims.has(number))).toEqual([]);
  expect(new Set(numbers).size, "none is used twice").toBe(numbers.length);
});

test("close ends a check", async () => {
  await idle();
  fate = async () => "is lost";
  watch(world.lock.acquire(FOREVER));
  await world.runtime.advance(100);
  await world.session.close();
  expect(world.runtime.running()).toBe(0);
  await world.runtime.advance(60_000);
  expect([reopened, warned]).toEqual([[], []]);
});

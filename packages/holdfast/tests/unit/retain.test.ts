/** Claims that are kept after their last release, on a manual clock. */
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Echo } from "../../src/core/inbox-check.js";
import type { Lease } from "../../src/core/lease.js";
import { retain } from "../../src/retain/index.js";
import { blockAfter } from "../../src/retain/retained-claim.js";
import { lost, NOW_US, ScriptedLock, watch } from "./scripted-lock.js";

const RETAIN_MS = 5_000;
const LEASE_MS = 30_000;
const TOKEN = 7;
const BLOCK = 31;
/** The tokens of a claim that is not retained. */
const USUAL = 32;

let world: ScriptedLock;
beforeEach(async () => {
  world = worldOf(RETAIN_MS);
  await world.session.clientInbox.open(1_000);
});

afterEach(async () => {
  await world.session.close();
});

function worldOf(forMs: number, echo?: Echo): ScriptedLock {
  const made = new ScriptedLock({ takesTurns: true, isHandedOff: true, ...(echo && { echo }) });
  Object.assign(made.protocol, { retain: retain({ forMs }) });
  return made;
}

function verbs(since = 0): string[] {
  return world.sent.slice(since).map(({ verb }) => verb);
}

/** Acquires and releases once. */
async function turn(): Promise<Lease> {
  const lease = await world.lock.acquire();
  expect(await lease.release()).toBe("released");
  return lease;
}

/** Acquires and releases `count` times. Returns how many tokens each new claim reserved. */
async function amounts(count: number): Promise<unknown[]> {
  const since = world.sent.length;
  for (let i = 0; i < count; i += 1) await turn();
  return world.sent.slice(since).flatMap(({ verb, claim }) => (verb === "acquire" ? [claim?.amount] : []));
}

/** The newest claim is recalled. */
function recall(): void {
  world.store.push(`~${world.lastNumber}`);
}

/** A caller waits for the lock, which another claim holds, and gets it by message. */
async function turnAfterWait(): Promise<void> {
  const { acquire } = world.answers;
  world.answers.acquire = async () => ({ outcome: "waiting", restMs: LEASE_MS, nowUs: NOW_US });
  const waiting = watch(world.lock.acquire());
  await world.runtime.advance(5);
  world.answers.acquire = acquire;
  world.store.push(`+${world.lastNumber} ${TOKEN} ${NOW_US + 5_000}`);
  await world.runtime.advance(5);
  await waiting.value?.release();
}

describe("within the retention", () => {
  test("acquire and release send nothing, and each lease has the next token", async () => {
    const tokens: number[] = [];
    for (let i = 0; i < BLOCK - 1; i += 1) {
      tokens.push((await turn()).token);
      await world.runtime.advance(100);
    }
    expect(tokens).toEqual(tokens.map((_, i) => TOKEN + i));
    expect(verbs()).toEqual(["acquire"]);
    expect(world.sent[0]?.claim?.owner).toMatch(/\/30000\/31\//);
  });

  test("the lock is released once, at its end, and no timer is left", async () => {
    await turn();
    await world.runtime.advance(RETAIN_MS - 1);
    expect(verbs()).toEqual(["acquire"]);
    await world.runtime.advance(1);
    expect(verbs()).toEqual(["acquire", "leave"]);
    await world.runtime.advance(60_000);
    expect(verbs()).toEqual(["acquire", "leave"]);
    expect(world.runtime.running()).toBe(0);
  });

  test("the time counts from the first release, however often the lock is acquired again", async () => {
    await turn();
    for (let i = 1; i < 5; i += 1) {
      await world.runtime.advance(RETAIN_MS / 5);
      await turn();
    }
    expect(verbs()).toEqual(["acquire"]);
    await world.runtime.advance(RETAIN_MS / 5);
    expect(verbs()).toEqual(["acquire", "leave"]);
  });

  test("a lease that is held when the time ends is released as usual", async () => {
    await turn();
    const lease = await world.lock.acquire();
    await world.runtime.advance(RETAIN_MS);
    expect(verbs()).toEqual(["acquire"]);
    await lease.release();
    expect(verbs()).toEqual(["acquire", "release"]);
  });
});

describe("clocks", () => {
  test.each([
    ["the process was frozen for longer than the retention", () => world.runtime.block(RETAIN_MS)],
    ["the process was frozen for longer than the lease", () => world.runtime.block(LEASE_MS)],
    ["the host was suspended", () => world.runtime.stepWall(RETAIN_MS)],
    [
      "the wall clock was set back meanwhile",
      () => {
        world.runtime.stepWall(-60_000);
        world.runtime.block(RETAIN_MS);
      },
    ],
  ])("a claim is not reused if %s, although no timer has fired", async (_, pass) => {
    const { owner } = await turn();
    pass();
    const lease = await world.lock.acquire();
    expect(lease.owner).not.toBe(owner);
    expect(verbs()).toEqual(["acquire", "leave", "acquire"]);
    expect(lease.validForMs()).toBeGreaterThan(LEASE_MS / 2);
    await lease.release();
  });

  test("a claim is not kept if half of its lease is over", async () => {
    const lease = await world.lock.acquire({ renew: false });
    await world.runtime.advance(LEASE_MS / 2);
    await lease.release();
    expect(verbs()).toEqual(["acquire", "release"]);
  });

  test("a claim is released when half of its lease is over", async () => {
    world = worldOf(LEASE_MS / 3);
    await world.session.clientInbox.open(1_000);
    const lease = await world.lock.acquire({ renew: false });
    await world.runtime.advance(LEASE_MS / 3);
    await lease.release();
    await world.runtime.advance(LEASE_MS / 6);
    expect(verbs()).toEqual(["acquire", "leave"]);
  });

  test("a claim that was renewed is not kept", async () => {
    const lease = await world.lock.acquire();
    await world.runtime.advance(LEASE_MS / 3);
    await lease.release();
    expect(verbs()).toEqual(["acquire", "extend", "release"]);
  });
});

describe("a caller asks the server", () => {
  test("if its lease is not renewed, because such a lease lasts for its full length", async () => {
    await turn();
    await world.runtime.advance(RETAIN_MS / 2);
    const lease = await world.lock.acquire({ renew: false });
    expect(verbs()).toEqual(["acquire", "leave", "acquire"]);
    expect(lease.validForMs()).toBeGreaterThan(LEASE_MS * 0.98);
    await lease.release();
  });

  test("after 20 ms in which the event loop has not turned, so that recalls and timers are not held up", async () => {
    await turn();
    for (let i = 0; i < 5; i += 1) {
      await turn();
      world.runtime.block(5);
    }
    expect(verbs()).toEqual(["acquire"]);
    await turn();
    expect(verbs()).toEqual(["acquire", "leave", "acquire"]);
    // The number of tokens does not start over.
    expect(world.sent.at(-1)?.claim?.amount).toBe(63);
    for (let i = 0; i < 5; i += 1) {
      world.runtime.block(15);
      await world.runtime.advance(1);
      await turn();
    }
    expect(verbs()).toEqual(["acquire", "leave", "acquire"]);
  });
});

describe("a recall", () => {
  test("releases a kept claim immediately, and the next caller asks the server", async () => {
    await turn();
    world.store.push(`~${world.lastNumber}`);
    expect(verbs()).toEqual(["acquire", "leave"]);
    await turn();
    expect(verbs().slice(0, 3)).toEqual(["acquire", "leave", "acquire"]);
  });

  test("of a claim in use makes its lease be released as usual", async () => {
    const lease = await world.lock.acquire({ renew: false });
    world.store.push(`~${world.lastNumber}`);
    await lease.release();
    expect(verbs()).toEqual(["acquire", "release"]);
  });

  test("of a claim in use causes no renewal, because its sender has just seen the lease", async () => {
    const lease = await world.lock.acquire();
    recall();
    await world.runtime.advance(LEASE_MS / 3 - 1);
    expect(verbs()).toEqual(["acquire"]);
    await lease.release();
  });

  test("after which the lock is free prevents its retention for `forMs`", async () => {
    await turn();
    recall();
    expect(await amounts(2)).toEqual([USUAL, USUAL]);
    await world.runtime.advance(RETAIN_MS - 1);
    expect(await amounts(2)).toEqual([USUAL, USUAL]);
    await world.runtime.advance(1);
    // The claim that notices the end of that time is the last one that is not retained.
    expect(await amounts(BLOCK)).toEqual([USUAL, BLOCK]);
  });

  test("has that effect even if callers of this process then wait for each other", async () => {
    await turn();
    recall();
    const { acquire } = world.answers;
    let reply = (): void => {};
    world.answers.acquire = () =>
      new Promise((resolve) => {
        reply = () => resolve({ outcome: "granted", token: TOKEN });
      });
    const first = watch(world.lock.acquire());
    await world.runtime.advance(5);
    const second = watch(world.lock.acquire());
    world.answers.acquire = acquire;
    reply();
    await world.runtime.advance(0);
    await first.value?.release();
    await world.runtime.advance(0);
    await second.value?.release();
    expect([first.state, second.state]).toEqual(["fulfilled", "fulfilled"]);
    expect(await amounts(2)).toEqual([USUAL, USUAL]);
    await world.runtime.advance(RETAIN_MS - 10);
    expect(await amounts(2)).toEqual([USUAL, USUAL]);
  });

  test("after which another caller gets the lock prevents the retention of only two more claims", async () => {
    await turn();
    recall();
    await turnAfterWait();
    expect(await amounts(BLOCK)).toEqual([USUAL, BLOCK]);
  });

  test("after which a claim waits has that effect even if a re-check, not a message, finds its grant", async () => {
    await turn();
    recall();
    const { acquire } = world.answers;
    world.answers.acquire = async () => ({ outcome: "waiting", restMs: LEASE_MS, nowUs: NOW_US });
    const waiting = watch(world.lock.acquire());
    await world.runtime.advance(5);
    world.answers.acquire = acquire;
    world.store.push(`~${world.lastNumber}`);
    await world.runtime.advance(5);
    expect(waiting.state).toBe("fulfilled");
    await waiting.value?.release();
    expect(await amounts(BLOCK)).toEqual([USUAL, BLOCK]);
  });

  test("that a caller of this process caused does not count as a request of another process", async () => {
    const lease = await world.lock.acquire();
    const number = world.lastNumber;
    const { acquire } = world.answers;
    world.answers.acquire = async () => ({ outcome: "waiting", restMs: LEASE_MS, nowUs: NOW_US });
    const waiting = watch(world.lock.acquire({ waitMs: 1_000 }));
    world.store.push(`~${number}`);
    await world.runtime.advance(1_000);
    expect(waiting.state).toBe("rejected");
    world.answers.acquire = acquire;
    await lease.release();
    expect(await amounts(2)).toEqual([BLOCK]);
  });

  test("is implied by a caller of this process that has to wait", async () => {
    const lease = await world.lock.acquire();
    world.answers.acquire = async () => ({ outcome: "waiting", restMs: LEASE_MS, nowUs: NOW_US });
    const waiting = watch(world.lock.acquire({ waitMs: 1_000 }));
    await world.runtime.advance(0);
    await lease.release();
    expect(verbs()).toEqual(["acquire", "acquire", "release"]);
    await world.runtime.advance(1_000);
    expect(waiting.state).toBe("rejected");
  });

  test("is implied by a force-release", async () => {
    const { owner } = await turn();
    world.store.push(`-${world.lastNumber}`);
    expect((await world.lock.acquire()).owner).not.toBe(owner);
  });

  test.each(["commands", "inbox"] as const)("is implied by a new connection for %s", async (connection) => {
    await turn();
    world.store.reconnect(connection);
    await world.runtime.advance(10);
    expect(verbs()).toEqual(["acquire", "leave"]);
  });

  test("whose release gets no reply leads to another one, and does not delay the next caller", async () => {
    await turn();
    world.answers.leave = async () => {
      throw lost();
    };
    world.store.push(`~${world.lastNumber}`);
    await world.runtime.advance(0);
    await turn();
    world.answers.leave = async () => {};
    await world.runtime.advance(1_000);
    expect(world.sentOf("leave").length).toBeGreaterThan(1);
  });
});

describe("a claim is not kept", () => {
  test("before the inbox is open", async () => {
    world = worldOf(RETAIN_MS);
    world.store.subscribe = () => new Promise(() => {});
    await turn();
    expect(verbs()).toEqual(["acquire", "release"]);
  });

  test("if the inbox opened after the grant, because a recall may have come before", async () => {
    world = worldOf(RETAIN_MS);
    const { subscribe } = world.store;
    let open = (): void => {};
    world.store.subscribe = () =>
      new Promise((resolve) => {
        open = () => resolve(subscribe());
      });
    const lease = await world.lock.acquire();
    open();
    await world.session.clientInbox.open(1_000);
    await lease.release();
    expect(verbs()).toEqual(["acquire", "release"]);
  });

  test.each(["commands", "inbox"] as const)(
    "if the connection for %s was replaced after the grant",
    async (connection) => {
      const lease = await world.lock.acquire();
      world.store.reconnect(connection);
      await lease.release();
      expect(verbs()).toEqual(["acquire", "release"]);
    },
  );

  test("if it had to wait, because others may wait behind it", async () => {
    await turnAfterWait();
    expect(verbs()).toEqual(["acquire", "extend", "release"]);
  });

  test("while messages do not arrive, as an echo shows", async () => {
    let isHeard = false;
    world = worldOf(RETAIN_MS, {
      async send({ number }) {
        if (isHeard) world.store.push(`=${number}`);
        return isHeard;
      },
      onDeaf: () => {},
    });
    await world.session.clientInbox.open(1_000);
    expect(await amounts(2)).toEqual([BLOCK]);
    await world.runtime.advance(RETAIN_MS);
    const since = world.sent.length;
    // The echo is sent while the first lease is held.
    const lease = await world.lock.acquire();
    await world.runtime.advance(0);
    await lease.release();
    await turn();
    expect(verbs(since)).toEqual(["acquire", "release", "acquire", "release"]);
    isHeard = true;
    await world.runtime.advance(RETAIN_MS);
    const last = await world.lock.acquire();
    await world.runtime.advance(0);
    await last.release();
    expect(await amounts(BLOCK - 1)).toEqual([]);
  });

  test("if one of its earlier requests may still run", async () => {
    const { acquire } = world.answers;
    world.answers.acquire = async () => {
      world.answers.acquire = acquire;
      throw lost();
    };
    const waiting = watch(world.lock.acquire());
    await world.runtime.advance(1_000);
    await waiting.value?.release();
    expect(verbs().slice(0, 3)).toEqual(["acquire", "acquire", "release"]);
  });

  test("with a retention of 0 ms", async () => {
    world = worldOf(0);
    await world.session.clientInbox.open(1_000);
    await turn();
    expect(verbs()).toEqual(["acquire", "release"]);
    expect(world.sent[0]?.claim?.amount).toBe(USUAL);
  });
});

describe("tokens", () => {
  /** Uses all tokens of the next claim, and lets `ms` pass. Returns how many it reserved. */
  async function useUp(ms: number): Promise<number | undefined> {
    const sent = world.sent.length;
    await turn();
    const { amount } = world.sent[sent]?.claim ?? {};
    await world.runtime.advance(ms);
    for (let i = 1; i < (amount ?? 0); i += 1) await turn();
    expect(verbs(sent)).toEqual(["acquire", "release"]);
    return amount;
  }

  test("the next claim reserves twice as many only after all of them were used", async () => {
    expect([await useUp(1), await useUp(1), await useUp(1)]).toEqual([31, 63, 127]);
    await turn();
    expect(world.sent.at(-1)?.claim?.amount).toBe(255);
    await world.runtime.advance(RETAIN_MS);
    await turn();
    expect(world.sent.at(-1)?.claim?.amount).toBe(31);
  });

  test.each([
    { amount: 31, passedUs: 63, next: 63, why: "doubles" },
    { amount: 31, passedUs: 62, next: 31, why: "stays the same if twice as many microseconds have not passed" },
    { amount: 63, passedUs: 62, next: 31, why: "starts over if fewer microseconds than tokens have passed" },
    { amount: 32_767, passedUs: Infinity, next: 65_535, why: "reaches its limit" },
    { amount: 65_535, passedUs: Infinity, next: 65_535, why: "stays at its limit" },
    { amount: 31, passedUs: -5, next: 31, why: "does not depend on a clock that goes back" },
  ])("the number of reserved tokens $why", ({ amount, passedUs, next }) => {
    expect(blockAfter(amount, passedUs)).toBe(next);
  });
});

test("tryAcquire and a caller with its own claim wait until a kept claim is released", async () => {
  await turn();
  await (await world.lock.tryAcquire())?.release();
  expect(verbs()).toEqual(["acquire", "leave", "acquire", "release"]);
  await turn();
  const sent = world.sent.length;
  await (await world.lock.acquire({ fairness: "strict" })).release();
  expect(verbs(sent)).toEqual(["leave", "acquire", "release"]);
});

test("close releases a kept claim, with and without a grace period", async () => {
  for (const graceMs of [undefined, 1_000]) {
    world = worldOf(RETAIN_MS);
    await world.session.clientInbox.open(1_000);
    await turn();
    expect(await world.session.close(graceMs)).toEqual({ released: [], unsettled: [] });
    expect(verbs()).toEqual(["acquire", "leave"]);
  }
});

test("a process that has nothing left to do releases kept claims, and keeps no listener", async () => {
  const listeners = process.listenerCount("beforeExit");
  await turn();
  expect(process.listenerCount("beforeExit")).toBe(listeners + 1);
  process.emit("beforeExit", 0);
  await world.runtime.advance(0);
  expect(verbs()).toEqual(["acquire", "leave"]);
  expect(process.listenerCount("beforeExit")).toBe(listeners);
});

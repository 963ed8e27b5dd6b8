/**
 * Waits of every kind that time out together share one inspect request, even if each caller creates its own lock
 * object.
 */
import { embedded, Keyspace, loadInterpreter } from "@holdfast/embedded";
import { javaUuid, timestampLock } from "@holdfast/interop/timestamp";
import { afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import type { Script } from "../../src/core/store.js";
import { createHoldfastOn, type Holdfast } from "../../src/holdfast.js";
import { ManualRuntime, settle } from "./manual-runtime.js";
import { type Watched, watch } from "./scripted-lock.js";

const CALLERS = 20;
const WAIT_MS = 300;
const LEASE_MS = 60_000;

/** A runtime that gives each client its own id. */
class Clients extends ManualRuntime {
  #last = 10;

  override newClientId(): string {
    this.#last += 1;
    return `manual-client-${this.#last}`;
  }
}

let runtime: Clients;
let holdfast: Holdfast;
let other: Holdfast;
let inspections: string[];
beforeAll(() => loadInterpreter());
beforeEach(() => {
  runtime = new Clients();
  inspections = [];
  const keyspace = new Keyspace({ clock: { nowUs: () => Math.floor(runtime.wallMs() * 1_000) } });
  const store = embedded({ keyspace });
  const run: typeof store.run = async (script: Script, ...rest) => {
    const reply = await store.run(script, ...rest);
    if (!script.name.endsWith("inspect")) return reply;
    inspections.push(script.name);
    // A reply takes a moment, as with a real server.
    return new Promise((resolve) => runtime.startTimer(() => resolve(reply), 1, false));
  };
  holdfast = createHoldfastOn(runtime, {
    store: {
      kind: "slow",
      run,
      inbox: (...args) => store.inbox(...args),
      onReconnect: (listener) => store.onReconnect(listener),
      close: () => store.close(),
    },
  });
  other = createHoldfastOn(runtime, { store: embedded({ keyspace }) });
});
afterEach(async () => {
  const closing = Promise.all([holdfast.close(), other.close()]);
  await runtime.advance(60_000);
  await closing;
});

/** How each kind waits. `prepare` takes the lock so that `wait` has to wait. */
interface Kind {
  readonly prepare: () => Promise<unknown>;
  readonly wait: () => Promise<unknown>;
}

const wait = { waitMs: WAIT_MS } as const;
const hold = { leaseMs: LEASE_MS, waitMs: 0 } as const;
const KINDS: Record<string, Kind> = {
  "a mutex": {
    prepare: () => other.mutex("x").acquire(hold),
    wait: () => holdfast.mutex("x").acquire(wait),
  },
  "a strictly fair mutex": {
    prepare: () => other.mutex("x").acquire(hold),
    wait: () => holdfast.mutex("x").acquire({ ...wait, fairness: "strict" }),
  },
  "a semaphore": {
    prepare: () => other.semaphore("x", { permits: 1 }).acquire(hold),
    wait: () => holdfast.semaphore("x", { permits: 1 }).acquire(wait),
  },
  "the read side of a read-write lock": {
    prepare: () => other.readWriteLock("x").write.acquire(hold),
    wait: () => holdfast.readWriteLock("x").read.acquire(wait),
  },
  "a multi-lock": {
    prepare: () => other.mutex("x").acquire(hold),
    wait: () => holdfast.multiLock(["x", "y"]).acquire(wait),
  },
  "a latch": {
    prepare: () => other.countDownLatch("x").trySetCount(1),
    wait: () => holdfast.countDownLatch("x").await(wait),
  },
  "a barrier": {
    prepare: async () => {},
    wait: () => holdfast.barrier("x", { parties: CALLERS + 1 }).arrive(wait),
  },
  "a lock of another system": {
    prepare: () => timestampLock(other, "x", javaUuid).acquire(hold),
    wait: () => timestampLock(holdfast, "x", javaUuid).acquire(wait),
  },
};

test.each(Object.entries(KINDS))("%s: timeouts share an inspect request", async (_name, { prepare, wait: waitFor }) => {
  const prepared = watch(prepare());
  await passes(100);
  expect(prepared.state).toBe("fulfilled");
  const waiting: Watched<unknown>[] = [];
  for (let i = 0; i < CALLERS; i += 1) waiting.push(watch(waitFor()));
  await passes(WAIT_MS - 1);
  expect(waiting.filter(({ state }) => state === "pending")).toHaveLength(CALLERS);
  expect(inspections).toHaveLength(0);
  await passes(1_000);
  expect(waiting.filter(({ state }) => state === "rejected")).toHaveLength(CALLERS);
  expect(inspections).toHaveLength(1);
});

/** Advances the clock in steps short enough for each reply to arrive at its own time. */
async function passes(ms: number): Promise<void> {
  for (let passedMs = 0; passedMs < ms; passedMs += 1) {
    await runtime.advance(1);
    for (let turn = 0; turn < 5; turn += 1) await settle();
  }
}

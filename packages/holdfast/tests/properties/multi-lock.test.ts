/**
 * Random programs of callers that acquire mutexes together and one by one, compared with a small model of each mutex:
 * its holder, the end of the lease, and its queue.
 */
import { type Clock, embedded, Keyspace, loadInterpreter, type Scheduler } from "@holdfast/embedded";
import fc from "fast-check";
import { beforeAll, expect, test } from "vitest";
import { call } from "../../src/core/call.js";
import { lockKeys } from "../../src/core/keys.js";
import type { Claim } from "../../src/core/protocol.js";
import { multiLockAcquire } from "../../src/generated/scripts.js";
import { MutexProtocol } from "../../src/mutex/protocol.js";
import { RUNS } from "./runs.js";

const NAMES = ["a", "b", "c"] as const;
const LEASE_MS = 1_000;
const CALLERS = 4;

type Step =
  | { readonly do: "together"; readonly caller: number; readonly names: readonly number[] }
  | { readonly do: "alone" | "release" | "leave"; readonly caller: number; readonly names: readonly [number] }
  | { readonly do: "pass"; readonly ms: number };

const caller = fc.nat(CALLERS - 1);
const one = fc.tuple(fc.nat(NAMES.length - 1));
const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({
    do: fc.constant("together" as const),
    caller,
    names: fc.shuffledSubarray([0, 1, 2], { minLength: 2 }),
  }),
  fc.record({ do: fc.constantFrom("alone" as const, "release" as const, "leave" as const), caller, names: one }),
  fc.record({ do: fc.constant("pass" as const), ms: fc.constantFrom(1, 400, LEASE_MS) }),
);

/** The model of one mutex. */
class Model {
  holder: string | undefined;
  endsAtMs = 0;
  token = 0;
  queue: string[] = [];

  pass(nowMs: number): void {
    // The server keeps a key through its last millisecond.
    if (this.endsAtMs < nowMs) this.holder = undefined;
  }

  grant(owner: string, nowMs: number): void {
    this.holder = owner;
    this.endsAtMs = nowMs + LEASE_MS;
  }

  next(nowMs: number): void {
    const head = this.queue.shift();
    this.holder = undefined;
    if (head !== undefined) this.grant(head, nowMs);
  }
}

/** A server with an instant network and a clock that the test controls. */
class World {
  nowMs = 1_763_711_220_000;
  readonly models = NAMES.map(() => new Model());
  readonly locks: readonly MutexProtocol[];
  readonly #store;

  constructor() {
    const clock: Clock = { nowUs: () => this.nowMs * 1_000 };
    const scheduler: Scheduler = { schedule: (task) => queueMicrotask(task) };
    this.#store = embedded({ keyspace: new Keyspace({ clock, scheduler }) });
    this.locks = NAMES.map((name) => {
      const keys = lockKeys("hf", "mutex", name);
      return new MutexProtocol({
        store: this.#store,
        name,
        key: undefined,
        keys: { ...keys, lock: keys.base },
        inbox: "in:",
      });
    });
  }

  async open(): Promise<void> {
    await this.#store.inbox("in:client", () => {}, 1_000);
  }

  together(names: readonly number[], owners: readonly string[]) {
    const keys = names.flatMap((i) => {
      const { lock, fence, queue, handed, pause } = (this.locks[i] as MutexProtocol).keys;
      return [lock, fence, queue, handed, pause];
    });
    const caller = { store: this.#store, name: "together" };
    const args = { leaseMs: LEASE_MS, owners: owners.join(" "), inbox: "hf:in:" };
    return call(caller, multiLockAcquire, { "keys...": keys }, args, 1_000);
  }
}

function claimOf(caller: number, name: number): Claim {
  const number = caller * 10 + name + 1;
  return { owner: `client/${number}/${LEASE_MS}/1`, number, leaseMs: LEASE_MS, amount: 1 };
}

async function together(world: World, caller: number, names: readonly number[]): Promise<void> {
  const { nowMs, models } = world;
  const owners = names.map((i) => claimOf(caller, i).owner);
  const refusedAt = names.findIndex((i, n) => {
    const { holder, queue } = models[i] as Model;
    return holder === undefined ? queue.length > 0 : holder !== owners[n];
  });
  const reply = await world.together(names, owners);
  if (refusedAt >= 0) {
    expect(reply).toMatchObject({ outcome: "refused", member: refusedAt + 1 });
    return;
  }
  if (reply.outcome !== "granted") throw new Error(`all were free, but the answer is ${JSON.stringify(reply)}`);
  names.forEach((i, n) => {
    const model = models[i] as Model;
    const token = Number(reply.tokens[n]);
    if (model.holder === owners[n]) expect(token).toBe(model.token);
    else expect(token).toBeGreaterThan(model.token);
    model.token = token;
    model.grant(owners[n] as string, nowMs);
  });
}

async function alone(world: World, caller: number, i: number): Promise<void> {
  const model = world.models[i] as Model;
  const claim = claimOf(caller, i);
  const { owner } = claim;
  const isQueued = model.queue.includes(owner);
  if (model.holder === undefined && model.queue.length === 0) model.grant(owner, world.nowMs);
  else if (model.holder === owner) model.endsAtMs = world.nowMs + LEASE_MS;
  else {
    if (!isQueued) model.queue.push(owner);
    if (model.holder === undefined) model.next(world.nowMs);
  }
  const attempt = await (world.locks[i] as MutexProtocol).acquire(claim, true, 1_000);
  expect(attempt.outcome).toBe(model.holder === owner ? "granted" : "waiting");
}

async function run(world: World, next: Step): Promise<void> {
  if (next.do === "pass") {
    world.nowMs += next.ms;
    for (const model of world.models) model.pass(world.nowMs);
    return;
  }
  if (next.do === "together") return together(world, next.caller, next.names);
  const [i] = next.names;
  if (next.do === "alone") return alone(world, next.caller, i);
  const model = world.models[i] as Model;
  const claim = claimOf(next.caller, i);
  const lock = world.locks[i] as MutexProtocol;
  if (next.do === "release") {
    const outcome = await lock.release({ claim, token: model.token, slots: [] }, 1_000);
    expect(outcome === "released").toBe(model.holder === claim.owner);
  } else {
    await lock.leave(claim, 1_000);
    model.queue = model.queue.filter((owner) => owner !== claim.owner);
  }
  if (model.holder === claim.owner) model.next(world.nowMs);
}

/** Asserts that the server agrees with the model and that tokens never fall. */
async function compare(world: World): Promise<void> {
  for (const [i, model] of world.models.entries()) {
    const state = await (world.locks[i] as MutexProtocol).inspect(undefined, 1_000);
    expect(state.holders.map(({ owner }) => owner)).toEqual(model.holder === undefined ? [] : [model.holder]);
    expect(state.waiters).toEqual(model.queue);
    expect(state.token ?? 0).toBeGreaterThanOrEqual(model.token);
    model.token = state.token ?? 0;
  }
}

beforeAll(() => loadInterpreter());

test("multi-locks grant all mutexes or none, respect the queues, and issue rising tokens", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 12 }), async (program) => {
      const world = new World();
      await world.open();
      for (const next of program) {
        await run(world, next);
        await compare(world);
      }
    }),
    { numRuns: RUNS },
  );
});

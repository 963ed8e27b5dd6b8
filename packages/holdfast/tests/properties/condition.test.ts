/**
 * Random programs of callers that acquire a mutex, wait, signal, give up, disconnect and reconnect, compared with a
 * model of the holder, the queue and the waiters for a signal. Every request is sent twice.
 */
import { loadInterpreter } from "@holdfast/embedded";
import fc from "fast-check";
import { beforeAll, expect, test } from "vitest";
import { type ConditionPlace, signal, waitProtocol } from "../../src/condition/protocol.js";
import { lockKeys } from "../../src/core/keys.js";
import type { Claim, WaitProtocol } from "../../src/core/protocol.js";
import { MutexProtocol } from "../../src/mutex/protocol.js";
import { ManualRuntime } from "../unit/manual-runtime.js";
import { InstantServer } from "./instant-server.js";
import { RUNS } from "./runs.js";

const LEASE_MS = 1_000;
const CALLERS = 4;
const TIMEOUT_MS = 1_000;

type Step =
  | {
      readonly do: "acquire" | "ask" | "wait" | "signal" | "signal all" | "release" | "leave" | "go away" | "come back";
      readonly caller: number;
    }
  | { readonly do: "pass"; readonly ms: number };

/** Stands for the current holder, because few steps have an effect for other callers. */
const HOLDER = -1;
const anybody = fc.nat(CALLERS - 1);
const mostlyHolder = fc.oneof({ weight: 5, arbitrary: fc.constant(HOLDER) }, { weight: 1, arbitrary: anybody });

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 5, arbitrary: fc.record({ do: fc.constantFrom("acquire", "acquire", "ask"), caller: anybody }) },
  {
    weight: 9,
    arbitrary: fc.record({
      do: fc.constantFrom("wait", "wait", "wait", "signal", "signal", "signal all", "release", "release"),
      caller: mostlyHolder,
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constantFrom("leave", "leave", "go away", "come back", "come back"),
      caller: anybody,
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("pass" as const), ms: fc.constantFrom(1, 400, LEASE_MS) }) },
);

/** The expected state. */
class Model {
  holder: string | undefined;
  endsAtMs = 0;
  queue: string[] = [];
  condition: string[] = [];
  readonly #server: InstantServer;

  constructor(server: InstantServer) {
    this.#server = server;
  }

  pass(): void {
    // The server keeps a key through its last millisecond.
    if (this.endsAtMs < this.#server.nowMs) this.holder = undefined;
  }

  grant(owner: string): void {
    this.holder = owner;
    this.endsAtMs = this.#server.nowMs + LEASE_MS;
  }

  handOff(self?: string): void {
    this.holder = undefined;
    for (let next = this.queue.shift(); next !== undefined; next = this.queue.shift()) {
      if (next !== self && !this.#server.hears(next)) continue;
      this.grant(next);
      return;
    }
  }

  acquire(owner: string): void {
    if (this.holder === owner) {
      // A re-check renews the lease.
      this.grant(owner);
    } else if (this.holder === undefined && this.queue.length === 0) {
      this.grant(owner);
    } else {
      if (!this.queue.includes(owner)) this.queue.push(owner);
      if (this.holder === undefined) this.handOff(owner);
    }
  }

  /** Re-checks as a waiter for a signal. A caller in neither queue acquires instead. */
  ask(owner: string): void {
    if (this.condition.includes(owner)) return;
    if (this.queue.includes(owner) && this.holder !== undefined) return;
    this.acquire(owner);
  }

  signal(most: number): number {
    let moved = 0;
    while (moved < most && this.condition.length > 0) {
      const next = this.condition.shift() as string;
      if (!this.#server.hears(next)) continue;
      this.queue.push(next);
      moved += 1;
    }
    return moved;
  }

  leaveCondition(owner: string): void {
    const at = this.condition.indexOf(owner);
    if (at >= 0) {
      this.condition.splice(at, 1);
      return;
    }
    this.queue = this.queue.filter((other) => other !== owner);
    this.signal(1);
    if (this.holder === owner) this.handOff();
  }

  leaveQueue(owner: string): void {
    if (this.holder === owner) this.handOff();
    else this.queue = this.queue.filter((other) => other !== owner);
  }
}

interface Caller {
  claim: Claim | undefined;
  /** Set if the claim reached the mutex through the condition. */
  wait: WaitProtocol | undefined;
  isSignalled: boolean;
}

class World {
  readonly server = new InstantServer();
  readonly model: Model = new Model(this.server);
  readonly callers: Caller[] = Array.from({ length: CALLERS }, () => ({
    claim: undefined,
    wait: undefined,
    isSignalled: false,
  }));
  readonly mutex: MutexProtocol;
  readonly place: ConditionPlace;
  #lastNumber = 0;
  #lastRequest = 0;

  constructor() {
    const { store, inbox } = this.server;
    const keys = lockKeys("hf", "mutex", "m");
    this.mutex = new MutexProtocol({ store, name: "m", key: undefined, keys: { ...keys, lock: keys.base }, inbox });
    const { lock, fence, queue, handed, pause } = this.mutex.keys;
    this.place = {
      store,
      mutex: this.mutex,
      lock,
      fence,
      queue,
      handed,
      pause,
      condition: `${keys.base}:condition:c`,
      inbox,
    };
  }

  newClaim(caller: number): Claim {
    this.#lastNumber += 1;
    return {
      owner: `c${caller}/${this.#lastNumber}/${LEASE_MS}/1`,
      number: this.#lastNumber,
      leaseMs: LEASE_MS,
      amount: 1,
    };
  }

  /** The caller whose claim holds the mutex, or the first caller. */
  get holder(): number {
    const at = this.callers.findIndex(({ claim }) => claim !== undefined && claim.owner === this.model.holder);
    return Math.max(0, at);
  }

  get token(): number {
    return Number(this.server.valueOf(this.place.fence));
  }

  async acquire(i: number): Promise<void> {
    const caller = this.callers[i] as Caller;
    if (caller.claim !== undefined) return;
    caller.claim = this.newClaim(i);
    this.model.acquire(caller.claim.owner);
    await this.mutex.acquire(caller.claim, true, TIMEOUT_MS);
    await this.ask(i);
  }

  async ask(i: number): Promise<void> {
    const caller = this.callers[i] as Caller;
    const { claim, wait } = caller;
    if (claim === undefined) return;
    const wasSignalled = caller.isSignalled;
    const { outcome } = await (wait ?? this.mutex).acquire(claim, true, TIMEOUT_MS);
    if (wait === undefined || wasSignalled) {
      this.model.acquire(claim.owner);
    } else if (outcome === "refused") {
      // The claim was signaled or dropped, so the core re-checks immediately.
      caller.isSignalled = true;
      await wait.acquire(claim, true, TIMEOUT_MS);
      this.model.ask(claim.owner);
    } else {
      this.model.ask(claim.owner);
    }
  }

  async wait(i: number): Promise<void> {
    const caller = this.callers[i] as Caller;
    const owner = caller.claim?.owner;
    if (owner === undefined || owner !== this.model.holder) return;
    const session = { runtime: new ManualRuntime(), commandReconnects: 0 };
    const { token } = this;
    const held = { owner, token, grant: { token }, validForMs: () => LEASE_MS, undoLateRequests: () => {} };
    const protocol = waitProtocol(session, this.place, held);
    const claim = this.newClaim(i);
    Object.assign(caller, { claim, wait: protocol, isSignalled: false });
    this.model.condition.push(claim.owner);
    this.model.handOff();
    expect(await protocol.acquire(claim, true, TIMEOUT_MS)).toMatchObject({ outcome: "waiting" });
    await this.ask(i);
  }

  async signal(i: number, most: number): Promise<void> {
    const owner = this.callers[i]?.claim?.owner;
    if (owner === undefined) return;
    this.#lastRequest += 1;
    const { token } = this;
    if (owner !== this.model.holder) {
      const reply = await signal(this.place, { owner, token }, this.#lastRequest, most, TIMEOUT_MS);
      expect(reply.outcome).not.toBe("signalled");
      return;
    }
    const moved = this.model.signal(most);
    const left = this.model.condition.length;
    for (let copy = 0; copy < 2; copy += 1) {
      const reply = await signal(this.place, { owner, token }, this.#lastRequest, most, TIMEOUT_MS);
      expect(reply).toEqual({ outcome: "signalled", moved, left });
    }
  }

  async release(i: number): Promise<void> {
    const caller = this.callers[i] as Caller;
    if (caller.claim === undefined || caller.claim.owner !== this.model.holder) return;
    const grant = { claim: caller.claim, token: this.token, slots: [] };
    Object.assign(caller, { claim: undefined, wait: undefined });
    this.model.handOff();
    expect(await this.mutex.release(grant, TIMEOUT_MS)).toBe("released");
    expect(await this.mutex.release(grant, TIMEOUT_MS)).not.toBe("released");
  }

  async leave(i: number): Promise<void> {
    const caller = this.callers[i] as Caller;
    const { claim, wait } = caller;
    if (claim === undefined) return;
    Object.assign(caller, { claim: undefined, wait: undefined });
    if (wait === undefined) this.model.leaveQueue(claim.owner);
    else this.model.leaveCondition(claim.owner);
    await (wait ?? this.mutex).leave(claim, TIMEOUT_MS);
    await (wait ?? this.mutex).leave(claim, TIMEOUT_MS);
  }

  async perform(step: Step): Promise<void> {
    if (step.do === "pass") {
      this.server.nowMs += step.ms;
      this.model.pass();
      return;
    }
    const caller = step.caller === HOLDER ? this.holder : step.caller;
    switch (step.do) {
      case "acquire":
        return this.acquire(caller);
      case "ask":
        return this.ask(caller);
      case "wait":
        return this.wait(caller);
      case "signal":
        return this.signal(caller, 1);
      case "signal all":
        return this.signal(caller, 1_000);
      case "release":
        return this.release(caller);
      case "leave":
        return this.leave(caller);
      case "go away":
        return this.server.goAway(`c${caller}`);
      case "come back":
        return this.server.arrive(`c${caller}`);
    }
  }

  check(): void {
    const { server, model, place } = this;
    expect(server.valueOf(place.lock)).toBe(model.holder);
    expect(server.membersOf(place.queue)).toEqual(model.queue);
    expect(server.membersOf(place.condition)).toEqual(model.condition);
    expect(server.immortals()).toEqual([]);
  }
}

beforeAll(() => loadInterpreter());

test("a mutex and its condition behave like their model of three lists, even if every request is sent twice", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 40, size: "max" }), async (steps) => {
      const world = new World();
      for (let i = 0; i < CALLERS; i += 1) await world.server.arrive(`c${i}`);
      for (const each of steps) {
        await world.perform(each);
        world.check();
      }
    }),
    { numRuns: RUNS },
  );
});

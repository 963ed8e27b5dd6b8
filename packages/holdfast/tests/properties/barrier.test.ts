/**
 * Random programs of parties that arrive, re-check, give up, crash and reset, compared with a model of a list and a
 * map. Every request is sent twice.
 */
import { loadInterpreter } from "@holdfast/embedded";
import fc from "fast-check";
import { beforeAll, expect, test } from "vitest";
import { type Arrival, type BarrierProtocol, barrierProtocol } from "../../src/barrier/protocol.js";
import type { BreakReason } from "../../src/core/errors.js";
import type { Claim } from "../../src/core/protocol.js";
import { InstantServer } from "./instant-server.js";
import { RUNS } from "./runs.js";

const TIMEOUT_MS = 1_000;
const PARTIES = 3;
const CALLERS = 5;
const LEASES_MS = [300, 1_000];

type Step =
  | { readonly do: "arrive"; readonly caller: number; readonly leaseMs: number; readonly enqueue: boolean }
  | { readonly do: "ask" | "leave"; readonly caller: number }
  | { readonly do: "reset" }
  | { readonly do: "pass"; readonly ms: number };

const caller = fc.nat(CALLERS - 1);
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      do: fc.constant("arrive" as const),
      caller,
      leaseMs: fc.constantFrom(...LEASES_MS),
      enqueue: fc.constantFrom(true, true, true, false),
    }),
  },
  { weight: 5, arbitrary: fc.record({ do: fc.constantFrom("ask", "ask", "ask", "leave"), caller }) },
  { weight: 2, arbitrary: fc.constant({ do: "reset" as const }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant("pass" as const), ms: fc.constantFrom(1, 100, 299, 1_000) }) },
);

type End =
  | { readonly passed: number; readonly index: number }
  | { readonly broken: number; readonly isLast: boolean }
  | "refused";

class World {
  readonly server = new InstantServer();
  readonly barrier: BarrierProtocol;
  readonly callers: ({ readonly claim: Claim; readonly arrival: Arrival } | undefined)[] = [];
  // The model.
  generation = 1;
  arrived: { readonly owner: string; endsAtMs: number }[] = [];
  broken: { readonly generation: number; readonly reason: BreakReason; readonly by: string } | undefined;
  readonly ends = new Map<string, End>();
  #lastNumber = 0;

  constructor() {
    const { store, inbox } = this.server;
    this.barrier = barrierProtocol({ store, name: "b", base: "hf:barrier:{b}", inbox, parties: PARTIES });
  }

  next(): number {
    this.#lastNumber += 1;
    return this.#lastNumber;
  }

  break(reason: BreakReason, by: string): void {
    for (const { owner } of this.arrived) this.ends.set(owner, { broken: this.generation, isLast: true });
    this.broken = { generation: this.generation, reason, by };
    this.arrived = [];
  }

  /** Updates the model and returns the reply that the server must send to `owner`. */
  arriving(owner: string, leaseMs: number, enqueue: boolean): End | "waiting" | "refused" {
    const end = this.ends.get(owner);
    if (end !== undefined) return end;
    if (this.broken?.generation === this.generation) return { broken: this.generation, isLast: true };
    const dead = this.arrived
      .filter(({ endsAtMs }) => endsAtMs <= this.server.nowMs)
      .toSorted((a, b) => a.endsAtMs - b.endsAtMs || (a.owner < b.owner ? -1 : 1))[0];
    if (dead !== undefined) {
      this.break("lease-ended", dead.owner);
      return { broken: this.generation, isLast: true };
    }
    let own = this.arrived.find((each) => each.owner === owner);
    if (own === undefined) {
      if (!enqueue && this.arrived.length + 1 < PARTIES) return "refused";
      own = { owner, endsAtMs: 0 };
      this.arrived.push(own);
    }
    own.endsAtMs = this.server.nowMs + leaseMs;
    if (this.arrived.length < PARTIES) return "waiting";
    this.arrived.forEach((each, index) => {
      this.ends.set(each.owner, { passed: this.generation, index });
    });
    this.arrived = [];
    this.generation += 1;
    return this.ends.get(owner) as End;
  }

  async ask(i: number, enqueue: boolean): Promise<void> {
    const found = this.callers[i];
    if (found === undefined) return;
    const { claim, arrival } = found;
    const heardBefore = this.server.heard.length;
    const expected = this.arriving(claim.owner, claim.leaseMs, enqueue);
    for (let copy = 0; copy < 2; copy += 1) {
      const attempt = await arrival.acquire(claim, enqueue, TIMEOUT_MS);
      if (typeof expected === "string") {
        expect(attempt.outcome).toBe(expected);
      } else if ("passed" in expected) {
        expect(attempt).toEqual({ outcome: "granted", token: expected.passed, slots: [expected.index] });
        expect(arrival.broken()).toBeUndefined();
      } else {
        const last = this.broken?.generation === expected.broken ? this.broken : undefined;
        expect(arrival.broken()).toEqual({
          generation: expected.broken,
          reason: last?.reason ?? "reset",
          by: last?.by ?? "",
        });
      }
    }
    if (typeof expected === "string") return;
    this.callers[i] = undefined;
    // The party that completes a generation notifies each of the others once.
    const granted = this.server.heard.slice(heardBefore).filter((message) => message.includes("+"));
    if ("passed" in expected && granted.length > 0) expect(granted).toHaveLength(PARTIES - 1);
  }

  async arrive(i: number, leaseMs: number, enqueue: boolean): Promise<void> {
    if (this.callers[i] !== undefined) return;
    const number = this.next();
    const claim = { owner: `p/${number}/${leaseMs}/1`, number, leaseMs, amount: 1 };
    const arrival = this.barrier.arrival(
      true,
      () => false,
      () => "left",
    );
    this.callers[i] = { claim, arrival };
    await this.ask(i, enqueue);
  }

  async leave(i: number): Promise<void> {
    const found = this.callers[i];
    if (found === undefined) return;
    const { claim, arrival } = found;
    this.callers[i] = undefined;
    const end = this.ends.get(claim.owner);
    if (this.arrived.some(({ owner }) => owner === claim.owner)) this.break("left", claim.owner);
    else if (end === undefined) this.ends.set(claim.owner, "refused");
    await arrival.leave(claim, TIMEOUT_MS);
    expect(arrival.passed()).toEqual(
      typeof end === "object" && "passed" in end ? { generation: end.passed, index: end.index } : undefined,
    );
    const isAbsent = this.ends.get(claim.owner) === "refused";
    expect(arrival.isAbsent()).toBe(isAbsent);
    await arrival.leave(claim, TIMEOUT_MS);
    expect(arrival.isAbsent()).toBe(isAbsent);
    // A late copy of its arrival does not count and reports nothing about a generation it does not belong to.
    const late = await arrival.acquire(claim, true, TIMEOUT_MS);
    if (isAbsent) expect([late.outcome, arrival.broken()]).toEqual(["refused", undefined]);
  }

  async reset(): Promise<void> {
    const request = `request ${this.next()}`;
    if (this.arrived.length > 0) this.break("reset", "");
    this.generation += 1;
    expect(await this.barrier.reset(request, TIMEOUT_MS)).toBe(this.generation);
    expect(await this.barrier.reset(request, TIMEOUT_MS)).toBe(this.generation);
  }

  async perform(step: Step): Promise<void> {
    switch (step.do) {
      case "arrive":
        return this.arrive(step.caller, step.leaseMs, step.enqueue);
      case "ask":
        return this.ask(step.caller, true);
      case "leave":
        return this.leave(step.caller);
      case "reset":
        return this.reset();
      case "pass":
        this.server.nowMs += step.ms;
    }
  }

  async check(): Promise<void> {
    const state = await this.barrier.inspect(undefined, TIMEOUT_MS);
    expect(state.generation).toBe(this.generation);
    expect(state.waiters).toEqual(this.arrived.map(({ owner }) => owner));
    expect(state.broken).toEqual(this.broken?.generation === this.generation ? this.broken : undefined);
    expect(this.server.immortals()).toEqual([]);
  }
}

beforeAll(() => loadInterpreter());

test("a barrier behaves like its model of a list and a map, even if every request is sent twice", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 40, size: "max" }), async (steps) => {
      const world = new World();
      await world.server.arrive("p");
      for (const each of steps) {
        await world.perform(each);
        await world.check();
      }
    }),
    { numRuns: RUNS },
  );
});

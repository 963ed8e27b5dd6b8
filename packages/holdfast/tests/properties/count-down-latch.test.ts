/**
 * Random programs of callers that set, count down and wait, compared with a model of a number and two sets. Every
 * request is sent twice immediately, and some again later.
 */
import { loadInterpreter } from "@holdfast/embedded";
import fc from "fast-check";
import { beforeAll, expect, test } from "vitest";
import type { Claim, WaitProtocol } from "../../src/core/protocol.js";
import { type LatchProtocol, latchProtocol } from "../../src/count-down-latch/protocol.js";
import { InstantServer } from "./instant-server.js";
import { RUNS } from "./runs.js";

const TIMEOUT_MS = 1_000;
/** Longer than the minute for which a waiter keeps the count alive anyway. */
const KEEP_MS = 100_000;
const WAITERS = 3;

type Step =
  | { readonly do: "set"; readonly count: number }
  | { readonly do: "count down"; readonly by: number; readonly callerId: string | undefined }
  | { readonly do: "again"; readonly nth: number }
  | { readonly do: "wait" | "ask" | "leave"; readonly waiter: number }
  | { readonly do: "pass"; readonly ms: number };

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ do: fc.constant("set" as const), count: fc.integer({ min: 1, max: 4 }) }) },
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant("count down" as const),
      by: fc.integer({ min: 1, max: 2 }),
      callerId: fc.constantFrom(undefined, undefined, "a", "b", "/c"),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("again" as const), nth: fc.nat(5) }) },
  {
    weight: 6,
    arbitrary: fc.record({ do: fc.constantFrom("wait", "wait", "ask", "leave"), waiter: fc.nat(WAITERS - 1) }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("pass" as const), ms: fc.constantFrom(1, 400, KEEP_MS + 1) }) },
);

interface Waiter {
  readonly claim: Claim;
  readonly protocol: WaitProtocol;
  readonly generation: number;
  /** The server forgets a waiter that has sent no request for a minute. */
  askedAtMs: number;
}

class World {
  readonly server = new InstantServer();
  readonly latch: LatchProtocol;
  readonly waiters: (Waiter | undefined)[] = Array.from({ length: WAITERS }, () => undefined);
  // The model.
  count = 0;
  generation = 0;
  endsAtMs = 0;
  counted = new Set<string>();
  /** Requests that were counted, newest first. Copies of them may arrive at any time. */
  readonly sent: {
    readonly request: string;
    readonly caller: string;
    readonly by: number;
    readonly generation: number;
  }[] = [];
  #lastNumber = 0;

  constructor() {
    const { store, inbox } = this.server;
    this.latch = latchProtocol({ store, name: "l", base: "hf:count-down-latch:{l}", inbox, keepMs: KEEP_MS });
  }

  next(): number {
    this.#lastNumber += 1;
    return this.#lastNumber;
  }

  async set(count: number): Promise<void> {
    const request = `request ${this.next()}`;
    const isFree = this.count === 0;
    for (let copy = 0; copy < 2; copy += 1) {
      expect(await this.latch.setCount(count, request, TIMEOUT_MS)).toBe(isFree);
    }
    if (!isFree) return;
    this.count = count;
    this.generation += 1;
    this.counted = new Set();
    this.#used();
  }

  async countDown(caller: string, by: number): Promise<void> {
    const request = `/request ${this.next()}`;
    const counts = this.count > 0 && !this.counted.has(caller);
    if (counts) {
      this.sent.unshift({ request, caller, by, generation: this.generation });
      this.count = Math.max(0, this.count - by);
      if (caller !== "") this.counted.add(caller);
      this.#used();
    }
    const before = this.server.heard.length;
    expect(await this.latch.countDown(request, caller, by, TIMEOUT_MS)).toBe(this.count);
    expect(await this.latch.countDown(request, caller, by, TIMEOUT_MS)).toBe(this.count);
    const told = this.server.heard.slice(before).map((message) => Number(/\+(\d+) /.exec(message)?.[1]));
    // Each waiter is notified once when the count reaches zero, and not otherwise.
    const isZero = counts && this.count === 0;
    expect(new Set(told).size).toBe(told.length);
    if (isZero) expect(told).toEqual(expect.arrayContaining(this.#waiting()));
    else expect(told).toEqual([]);
  }

  async again(nth: number): Promise<void> {
    const sent = this.sent[nth];
    if (sent === undefined) return;
    const { request, caller, by, generation } = sent;
    // A copy of a counted request changes nothing, even if the latch was set again since. A copy from before the keys
    // expired would count again, but no client keeps a request for so long.
    if (generation < this.generation - 1) return;
    expect(await this.latch.countDown(request, caller, by, TIMEOUT_MS)).toBe(this.count);
  }

  async wait(i: number): Promise<void> {
    if (this.waiters[i] !== undefined) return;
    const number = this.next();
    const claim = { owner: `w/${number}/1000/1`, number, leaseMs: 1_000, amount: 1 };
    const protocol = this.latch.wait();
    const attempt = await protocol.acquire(claim, true, TIMEOUT_MS);
    expect(attempt.outcome).toBe(this.count === 0 ? "granted" : "waiting");
    if (this.count === 0) return;
    this.waiters[i] = { claim, protocol, generation: this.generation, askedAtMs: this.server.nowMs };
    this.#used();
  }

  async ask(i: number): Promise<void> {
    const waiter = this.waiters[i];
    if (waiter === undefined) return;
    const isOver = this.count === 0 || waiter.generation !== this.generation;
    const { outcome } = await waiter.protocol.acquire(waiter.claim, true, TIMEOUT_MS);
    expect(outcome).toBe(isOver ? "granted" : "waiting");
    if (isOver) {
      this.waiters[i] = undefined;
    } else {
      waiter.askedAtMs = this.server.nowMs;
      this.#used();
    }
  }

  async leave(i: number): Promise<void> {
    const waiter = this.waiters[i];
    if (waiter === undefined) return;
    this.waiters[i] = undefined;
    await waiter.protocol.leave(waiter.claim, TIMEOUT_MS);
    await waiter.protocol.leave(waiter.claim, TIMEOUT_MS);
  }

  async perform(step: Step): Promise<void> {
    switch (step.do) {
      case "set":
        return this.set(step.count);
      case "count down": {
        return this.countDown(step.callerId === undefined ? "" : `:${step.callerId}`, step.by);
      }
      case "again":
        return this.again(step.nth);
      case "wait":
        return this.wait(step.waiter);
      case "ask":
        return this.ask(step.waiter);
      case "leave":
        return this.leave(step.waiter);
      case "pass": {
        this.server.nowMs += step.ms;
        if (this.endsAtMs >= this.server.nowMs) return;
        if (this.count > 0 || this.generation > 0) this.#forget();
      }
    }
  }

  #forget(): void {
    this.count = 0;
    this.counted = new Set();
    this.sent.length = 0;
  }

  #used(): void {
    this.endsAtMs = this.server.nowMs + KEEP_MS;
  }

  #waiting(): number[] {
    return this.waiters
      .filter((waiter) => waiter !== undefined)
      .filter(({ generation, askedAtMs }) => generation === this.generation && askedAtMs + 60_000 > this.server.nowMs)
      .map(({ claim }) => claim.number);
  }
}

beforeAll(() => loadInterpreter());

test("a latch behaves like its model of a number and two sets, even if every request is sent twice", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 40, size: "max" }), async (steps) => {
      const world = new World();
      await world.server.arrive("w");
      for (const each of steps) {
        await world.perform(each);
        expect((await world.latch.inspect(undefined, TIMEOUT_MS)).count).toBe(world.count);
        expect(world.server.immortals()).toEqual([]);
      }
    }),
    { numRuns: RUNS },
  );
});

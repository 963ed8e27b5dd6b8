/**
 * Random programs of several clients with up to 25 steps. They run on the embedded store and on the model, which are
 * compared after every step.
 */

import { embedded, Keyspace } from "@holdfast/embedded";
import fc from "fast-check";
import { expect } from "vitest";
import { CapacityMismatchError } from "../../src/core/errors.js";
import { lockKeys } from "../../src/core/keys.js";
import type { Claim } from "../../src/core/protocol.js";
import { OwnClaim } from "../../src/core/protocol.js";
import { webLocksSteal } from "../../src/generated/web-locks.js";
import { type PermitsProtocol, permitsProtocol } from "../../src/permits/protocol.js";
import { PermitsModel } from "./permits-model.js";
import { RUNS } from "./runs.js";

/** One step. `pick` is an index into the claims so far, latest first. */
export type Step =
  | { readonly verb: "acquire"; client: number; weight: number; leaseMs: number; enqueue: boolean; declared: number }
  | { readonly verb: "steal"; client: number; leaseMs: number }
  | { readonly verb: "again"; pick: number; enqueue: boolean }
  | { readonly verb: "release" | "force"; pick: number; isOld: boolean }
  | { readonly verb: "leave" | "adopt"; pick: number }
  | { readonly verb: "extend"; pick: number; leaseMs: number; isOld: boolean }
  | { readonly verb: "reweigh"; pick: number; weight: number; isOld: boolean; isLate: boolean }
  | { readonly verb: "resize"; capacity: number; declared: number }
  | { readonly verb: "pass"; ms: number };

/** A kind of permits, with the steps of its programs. */
export interface Subject {
  readonly kind: string;
  readonly numbered: number;
  readonly steps: fc.Arbitrary<Step>;
  /** Programs that once failed. They run every time. */
  readonly known?: readonly (readonly Step[])[];
}

/** The permits that a writer of a read-write lock takes. */
export const EVERYTHING = 1_000_000;

const pick = fc.nat({ max: 6 });
const isOld = fc.boolean();
const leaseMs = fc.constantFrom(100, 1_000, 5_000);
const soon = fc.integer({ min: 0, max: 1_200 });

/** Steps that every kind of permits supports. */
export function commonSteps(weight: fc.Arbitrary<number>, declared: fc.Arbitrary<number>): fc.Arbitrary<Step>[] {
  const client = fc.nat({ max: 2 });
  return [
    fc.record({ verb: fc.constant("acquire"), client, weight, leaseMs, enqueue: fc.boolean(), declared }),
    fc.record({ verb: fc.constant("acquire"), client, weight, leaseMs, enqueue: fc.constant(true), declared }),
    fc.record({ verb: fc.constant("again"), pick, enqueue: fc.boolean() }),
    fc.record({ verb: fc.constantFrom("release", "release", "force"), pick, isOld }),
    fc.record({ verb: fc.constantFrom("leave", "adopt"), pick }),
    fc.record({ verb: fc.constant("extend"), pick, leaseMs, isOld }),
    fc.record({ verb: fc.constant("pass"), ms: soon }),
  ];
}

/** A change of weight. */
export function reweighStep(weight: fc.Arbitrary<number>): fc.Arbitrary<Step> {
  return fc.record({ verb: fc.constant("reweigh"), pick, weight, isOld, isLate: fc.boolean() });
}

/** A request of Web Locks with `steal`. */
export function stealStep(): fc.Arbitrary<Step> {
  return fc.record({ verb: fc.constant("steal"), client: fc.nat({ max: 2 }), leaseMs });
}

/** Asserts that random programs of this kind do the same on the server as in the model. */
export async function holdsFor({ kind, numbered, steps, known = [] }: Subject): Promise<void> {
  const program = fc.array(steps, { minLength: 1, maxLength: 25 });
  await fc.assert(
    fc.asyncProperty(program, async (todo) => {
      const run = await Run.start(kind, numbered);
      for (const step of todo) await run.take(step);
    }),
    { numRuns: RUNS, examples: known.map((steps) => [[...steps]]) },
  );
}

/** A claim, and what its client knows about it. */
interface Known {
  readonly claim: Claim;
  readonly declared: number;
  token: number;
  firstToken: number;
  change: number;
  readonly isSteal: boolean;
}

class Run {
  readonly #keyspaceClock: { us: number };
  readonly #keyspace: Keyspace;
  readonly #stepsOf: (declared: number) => PermitsProtocol;
  readonly #model: PermitsModel;
  readonly #heard: string[] = [];
  readonly #steal: (claim: Claim) => Promise<unknown>;
  readonly #claims: Known[] = [];
  readonly #network: { under: number };
  #resizes = 0;
  #last = 0;

  /** The first two clients are subscribed to their inboxes. The third is not. */
  static async start(kind: string, numbered: number): Promise<Run> {
    const run = new Run(kind, numbered);
    await run.#listen();
    return run;
  }

  private constructor(kind: string, numbered: number) {
    const clock = { us: 1_763_711_220_000_000 };
    const network = { under: 0 };
    this.#keyspaceClock = clock;
    this.#network = network;
    this.#keyspace = new Keyspace({
      clock: { nowUs: () => clock.us },
      scheduler: {
        schedule(task) {
          network.under += 1;
          queueMicrotask(() => {
            network.under -= 1;
            task();
          });
        },
      },
    });
    const store = embedded({ keyspace: this.#keyspace });
    const keys = lockKeys("hf", kind, "a");
    const stealKeys = ["", ":fence", ":holders", ":slots", ":queue", ":pause", ":steals"].map((end) => keys.base + end);
    this.#steal = ({ owner, leaseMs, amount }) =>
      store.run(webLocksSteal, stealKeys, [owner, leaseMs, amount, "in:", ""], 1_000);
    this.#stepsOf = (declared) => permitsProtocol({ store, kind, name: "a", keys, inbox: "in:", declared, numbered });
    this.#model = new PermitsModel(clock.us, numbered, ({ owner }) => !owner.startsWith("client2"));
  }

  async #listen(): Promise<void> {
    const store = embedded({ keyspace: this.#keyspace });
    for (const client of ["client0", "client1"]) {
      await store.inbox(`in:${client}`, (message) => void this.#heard.push(message), 1_000);
    }
  }

  async take(step: Step): Promise<void> {
    const [answer, expected] = await this.#do(step);
    const actual = withoutPauses(answer);
    while (this.#network.under > 0) await Promise.resolve();
    expect(actual).toEqual(expected);
    expect(this.#heard.splice(0)).toEqual(this.#model.messages.splice(0));
    await this.#compareStates();
  }

  /** The reply of the server and the reply of the model. */
  async #do(step: Step): Promise<[unknown, unknown]> {
    const model = this.#model;
    if (step.verb === "pass") {
      this.#keyspaceClock.us += step.ms * 1_000;
      model.nowUs = this.#keyspaceClock.us;
      return [0, 0];
    }
    if (step.verb === "resize") {
      this.#resizes += 1;
      await this.#stepsOf(step.declared).resize(step.capacity, `<${this.#resizes}>`, 1_000);
      return [undefined, model.resize(step.capacity, step.declared)];
    }
    if (step.verb === "acquire") {
      const claim = this.#newClaim(`client${step.client}`, step.leaseMs, step.weight);
      this.#claims.unshift({ claim, declared: step.declared, token: 1, firstToken: 1, change: 0, isSteal: false });
      return this.#acquire(0, step.enqueue);
    }
    if (step.verb === "steal") {
      const claim = this.#newClaim(`client${step.client}`, step.leaseMs, EVERYTHING);
      this.#claims.unshift({ claim, declared: EVERYTHING, token: 1, firstToken: 1, change: 0, isSteal: true });
      return [await this.#steal(claim), model.steal(claim)];
    }
    const known = this.#claims[step.pick];
    if (known === undefined) return [0, 0];
    const { claim, declared } = known;
    const protocol = this.#stepsOf(declared);
    const token = "isOld" in step && step.isOld ? known.firstToken : known.token;
    const grant = { claim, token, slots: [] };
    switch (step.verb) {
      case "again":
        if (known.isSteal) return [await this.#steal(claim), model.steal(claim)];
        return this.#acquire(step.pick, step.enqueue);
      case "release":
        return [await protocol.release(grant, 1_000), model.release(claim, token)];
      case "leave":
        return [await protocol.leave(claim, 1_000), model.leave(claim)];
      case "extend":
        return [await protocol.extend(grant, step.leaseMs, 1_000), model.extend(claim, token, step.leaseMs)];
      case "force":
        return [await protocol.forceRelease({ owner: claim.owner, token }, 1_000), model.forceRelease(claim, token)];
      case "adopt": {
        const to = this.#newClaim("client1", claim.leaseMs, claim.amount);
        const outcome = await protocol.adopt(claim.owner, { claim: to, token, slots: [] }, 1_000);
        this.#claims.unshift({ ...known, claim: to, change: 0, isSteal: false });
        return [outcome, model.adopt(claim, to, token)];
      }
      case "reweigh": {
        const change = step.isLate ? Math.max(1, known.change - 1) : known.change + 1;
        known.change = Math.max(change, known.change);
        const actual = await protocol.reweigh(grant, step.weight, change, 1_000);
        if (typeof actual === "number") known.token = actual;
        return [actual, model.reweigh(claim, token, step.weight, change)];
      }
    }
  }

  async #acquire(index: number, enqueue: boolean): Promise<[unknown, unknown]> {
    const known = this.#claims[index];
    if (known === undefined) throw new Error("there is such a claim");
    const { claim, declared } = known;
    const expected = this.#model.acquire(claim, declared, enqueue);
    const actual: unknown = await this.#stepsOf(declared)
      .acquire(claim, enqueue, 1_000)
      .catch((error: unknown) => {
        if (!(error instanceof CapacityMismatchError)) throw error;
        return { capacity: error.capacity, declared: error.declared, permits: error.permits };
      });
    return [actual, expected];
  }

  async #compareStates(): Promise<void> {
    const model = this.#model;
    const { grants } = model;
    // Grants arrive by message or by reply. A holder knows its token from either.
    for (const known of this.#claims) {
      const held = grants.find(({ claim }) => claim === known.claim);
      if (held !== undefined) Object.assign(known, { token: held.token, firstToken: held.firstToken });
    }
    const state = await this.#stepsOf(1).inspect(undefined, 1_000);
    expect(state).toEqual({
      holders: grants.map(({ claim, weight, token, slots, endsAtUs }) => ({
        ...{ owner: claim.owner, weight, token, slots },
        leaseLeftMs: Math.ceil((endsAtUs - model.nowUs) / 1_000),
      })),
      token: model.lastToken,
      waiterCount: model.queue.length,
      waiters: model.queue.map(({ owner }) => owner),
      ahead: undefined,
      capacity: model.capacity,
      used: model.used,
    });
    for (const { leftMs } of this.#keyspace.dump()) expect(leftMs).toBeGreaterThan(0);
  }

  #newClaim(client: string, claimLeaseMs: number, weight: number): Claim {
    this.#last += 1;
    const facts = { clientId: client, number: this.#last, leaseMs: claimLeaseMs, amount: weight };
    return new OwnClaim({ ...facts, label: "", handOffMs: undefined });
  }
}

/** These programs contain no pauses. tests/lua/pausing.test.ts covers those. */
function withoutPauses(answer: unknown): unknown {
  if (typeof answer !== "object" || answer === null || !("pauses" in answer)) return answer;
  const { pauses, ...rest } = answer;
  expect(pauses).toEqual([]);
  return rest;
}

/**
 * Random programs of candidates that campaign, win, proclaim, resign, are deposed and crash, compared with a model of a
 * queue and the leader's last value. Every request is sent twice. Late copies of proclamations arrive at any time.
 */
import { loadInterpreter } from "@holdfast/embedded";
import fc from "fast-check";
import { beforeAll, expect, test } from "vitest";
import { lockKeys } from "../../src/core/keys.js";
import type { Claim } from "../../src/core/protocol.js";
import { ElectionProtocol } from "../../src/election/protocol.js";
import { InstantServer } from "./instant-server.js";
import { RUNS } from "./runs.js";

const TIMEOUT_MS = 1_000;
const LEASE_MS = 1_000;
const CANDIDATES = 3;

type Step =
  | { readonly do: "stand" | "resign" | "extend" | "leave" | "depose" | "proclaim"; readonly candidate: number }
  | { readonly do: "late copy"; readonly nth: number }
  | { readonly do: "pass"; readonly ms: number };

/** Stands for the current leader. */
const LEADER = -1;
const candidate = fc.oneof(
  { weight: 2, arbitrary: fc.constant(LEADER) },
  { weight: 1, arbitrary: fc.nat(CANDIDATES - 1) },
);
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ do: fc.constant("stand" as const), candidate: fc.nat(CANDIDATES - 1) }) },
  {
    weight: 8,
    arbitrary: fc.record({
      do: fc.constantFrom("proclaim", "proclaim", "proclaim", "resign", "resign", "extend", "leave", "depose"),
      candidate,
    }),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constant("late copy" as const), nth: fc.nat(3) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("pass" as const), ms: fc.constantFrom(1, 600, LEASE_MS + 1) }) },
);

interface Proclamation {
  readonly owner: string;
  readonly token: number;
  readonly value: string;
  readonly number: number;
}

class World {
  readonly server = new InstantServer();
  readonly election: ElectionProtocol;
  readonly claims: (Claim | undefined)[] = Array.from({ length: CANDIDATES }, () => undefined);
  readonly sent: Proclamation[] = [];
  // The model.
  queue: string[] = [];
  leader: string | undefined;
  endsAtMs = 0;
  said: { readonly owner: string; readonly value: string } | undefined;
  #lastNumber = 0;
  #lastTerm = 0;

  constructor() {
    const { store, inbox } = this.server;
    this.election = new ElectionProtocol({ store, name: "e", keys: lockKeys("hf", "election", "e"), inbox });
  }

  get term(): number {
    return Number(this.server.valueOf("hf:election:{e}:fence"));
  }

  lead(owner: string | undefined): void {
    this.leader = owner;
    this.said = undefined;
    this.endsAtMs = this.server.nowMs + LEASE_MS;
  }

  at(candidate: number): number {
    if (candidate !== LEADER) return candidate;
    return Math.max(
      0,
      this.claims.findIndex((claim) => claim !== undefined && claim.owner === this.leader),
    );
  }

  async stand(i: number): Promise<void> {
    let claim = this.claims[i];
    if (claim === undefined) {
      this.#lastNumber += 1;
      const number = this.#lastNumber;
      claim = { owner: `e/${number}/${LEASE_MS}/1`, number, leaseMs: LEASE_MS, amount: 1 };
      this.claims[i] = claim;
    }
    const { owner } = claim;
    if (this.leader === owner) this.endsAtMs = this.server.nowMs + LEASE_MS;
    else if (!this.queue.includes(owner)) this.queue.push(owner);
    if (this.leader === undefined) this.lead(this.queue.shift());
    for (let copy = 0; copy < 2; copy += 1) {
      const attempt = await this.election.acquire(claim, true, TIMEOUT_MS);
      expect(attempt.outcome).toBe(this.leader === owner ? "granted" : "waiting");
      if (attempt.outcome === "granted") expect(attempt.token).toBe(this.term);
    }
  }

  async proclaim(i: number): Promise<void> {
    const owner = this.claims[i]?.owner;
    if (owner === undefined) return;
    this.#lastNumber += 1;
    const proclamation = { owner, token: this.term, value: `${this.#lastNumber}`, number: this.#lastNumber };
    this.sent.unshift(proclamation);
    const leads = this.leader === owner;
    if (leads) this.said = proclamation;
    const before = this.server.heard.length;
    for (let copy = 0; copy < 2; copy += 1) {
      expect((await this.send(proclamation)) === "proclaimed").toBe(leads);
    }
    expect(this.server.heard.slice(before)).toEqual(leads ? ["observer changed"] : []);
  }

  send({ owner, token, value, number }: Proclamation): Promise<string> {
    return this.election.proclaim({ owner, token }, value, number, LEASE_MS, TIMEOUT_MS);
  }

  async resign(i: number): Promise<void> {
    const claim = this.claims[i];
    if (claim === undefined || claim.owner !== this.leader) return;
    this.claims[i] = undefined;
    const grant = { claim, token: this.term, slots: [] };
    const before = this.server.heard.length;
    this.lead(this.queue.shift());
    expect(await this.election.release(grant, TIMEOUT_MS)).toBe("released");
    expect(this.server.heard.slice(before)).toContain("observer changed");
    expect(await this.election.release(grant, TIMEOUT_MS)).not.toBe("released");
  }

  async extend(i: number): Promise<void> {
    const claim = this.claims[i];
    if (claim === undefined) return;
    const leads = claim.owner === this.leader;
    if (leads) this.endsAtMs = this.server.nowMs + LEASE_MS;
    const outcome = await this.election.extend({ claim, token: this.term, slots: [] }, LEASE_MS, TIMEOUT_MS);
    expect(outcome === "extended").toBe(leads);
  }

  async leave(i: number): Promise<void> {
    const claim = this.claims[i];
    if (claim === undefined) return;
    this.claims[i] = undefined;
    if (claim.owner === this.leader) this.lead(this.queue.shift());
    this.queue = this.queue.filter((owner) => owner !== claim.owner);
    await this.election.leave(claim, TIMEOUT_MS);
    await this.election.leave(claim, TIMEOUT_MS);
  }

  async depose(i: number): Promise<void> {
    const claim = this.claims[i];
    if (claim === undefined) return;
    const leads = claim.owner === this.leader;
    if (leads) {
      this.claims[i] = undefined;
      this.lead(this.queue.shift());
    }
    expect(await this.election.forceRelease({ owner: claim.owner }, TIMEOUT_MS)).toBe(leads);
    expect(await this.election.forceRelease({ owner: claim.owner }, TIMEOUT_MS)).toBe(false);
  }

  async perform(step: Step): Promise<void> {
    if (step.do === "pass") {
      this.server.nowMs += step.ms;
      if (this.endsAtMs < this.server.nowMs) this.lead(undefined);
    } else if (step.do === "late copy") {
      const copy = this.sent[step.nth];
      if (copy !== undefined) await this.send(copy);
    } else {
      await this[step.do](this.at(step.candidate));
    }
  }

  async check(): Promise<void> {
    const { server, leader, said } = this;
    expect(server.valueOf("hf:election:{e}")).toBe(leader);
    expect(server.membersOf("hf:election:{e}:queue")).toEqual(this.queue);
    const record = await this.election.leader(TIMEOUT_MS);
    // A leader is never shown with another candidate's value or with an outdated value of its own.
    if (said === undefined) expect(record).toBeUndefined();
    else expect(record).toMatchObject({ owner: leader, value: said.value, term: this.term });
    if (leader !== undefined) {
      expect(this.term).toBeGreaterThanOrEqual(this.#lastTerm);
      this.#lastTerm = this.term;
    }
    expect(server.immortals()).toEqual([]);
  }
}

beforeAll(() => loadInterpreter());

test("an election behaves like its model of a queue and a value, even if every request is sent twice", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 40, size: "max" }), async (steps) => {
      const world = new World();
      await world.server.arrive("e");
      await world.server.store.inbox(
        world.election.channel,
        (message) => world.server.heard.push(`observer ${message}`),
        1,
      );
      for (const each of steps) {
        await world.perform(each);
        await world.check();
      }
    }),
    { numRuns: RUNS },
  );
});

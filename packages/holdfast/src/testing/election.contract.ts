/** The contract suite for an election, which every store must pass. */
import { expect, test } from "vitest";
import {
  ClosedError,
  type Election,
  type ExportedLease,
  type Leader,
  type Leadership,
  LeaseLostError,
} from "../index.js";
import { LONG_MS, SOON_MS, until, withLeaseInTime } from "./delays.js";
import { exclusiveContract } from "./exclusive.contract.js";
import { forcedReasonContract } from "./forced-release.contract.js";
import { type StoreUnderTest, useScene } from "./subject.js";

/** Registers the tests. Call it inside a `describe` that names the store. */
export function electionContract(subject: StoreUnderTest): void {
  exclusiveContract(subject, (holdfast, name) => holdfast.election(name), { remains: /:(?:fence|value)$/ });

  const scene = useScene(subject, (holdfast, name) => holdfast.election(name));
  forcedReasonContract(scene);
  const first = (): Election => scene.holdfast.election(scene.name);
  const second = (): Election => scene.rivalHoldfast.election(scene.name);
  const queued = (count: number): Promise<void> =>
    until(async () => (await first().inspect()).waiterCount === count, `${count} candidates`);

  /** Observes the election and collects the leaders until `stop` is called. */
  const follow = (
    election: Election,
  ): { seen: (Leader | null)[]; done: Promise<unknown>; stop: () => Promise<unknown> } => {
    const controller = new AbortController();
    const seen: (Leader | null)[] = [];
    const done = (async () => {
      for await (const leader of election.observe({ signal: controller.signal })) seen.push(leader);
    })().catch((reason: unknown) => reason);
    return {
      seen,
      done,
      stop() {
        controller.abort("stopped");
        return done;
      },
    };
  };

  test("the winner leads with its value and term, and other clients see them", async () => {
    expect(await second().leader()).toBeNull();
    const leadership = await first().campaign("10.0.0.1:80", { label: "feed" });
    expect(leadership.value).toBe("10.0.0.1:80");
    expect(leadership.term).toBe(leadership.token);
    let leader = await second().leader();
    await until(async () => {
      leader = await second().leader();
      return leader?.pid !== undefined;
    }, "the leader's record");
    expect(leader).toMatchObject({
      value: "10.0.0.1:80",
      term: leadership.term,
      token: leadership.term,
      owner: leadership.owner,
      label: "feed",
      pid: process.pid,
      clientName: "first",
    });
    expect((await second().leader())?.leaseLeftMs).toBeGreaterThan(0);
    expect(await first().resign(leadership)).toBe("released");
    expect(await second().leader()).toBeNull();
  });

  test("a candidate leads as soon as the leader resigns, in a higher term", async () => {
    const one = await first().campaign("one");
    const standing = second().campaign("two", { waitMs: LONG_MS });
    await queued(1);
    expect((await first().leader())?.value).toBe("one");
    await one.release();
    const two = await standing;
    expect(two.term).toBeGreaterThan(one.term);
    expect(await first().leader()).toMatchObject({ value: "two", term: two.term });
    await two.release();
  });

  test("each term counts as one transition, even if its leader proclaims and renews", async () => {
    for (let transitions = 0; transitions < 3; transitions += 1) {
      const election = transitions % 2 === 0 ? first() : second();
      const leadership = await election.campaign("one");
      await leadership.proclaim("two");
      await leadership.extend(LONG_MS);
      expect(await second().leader()).toMatchObject({ value: "two", transitions });
      expect(election.health(LONG_MS)).toMatchObject({ ok: true, role: "leader" });
      await leadership.release();
      expect(election.health(0)).toEqual({ ok: true, role: "follower", ageMs: 0 });
    }
  });

  test("a leader can change its value, and a former leader cannot", async () => {
    const leadership = await first().campaign("starting");
    await first().proclaim(leadership, "ready");
    expect(leadership.value).toBe("ready");
    expect((await second().leader())?.value).toBe("ready");
    await second().forceRelease({ token: leadership.term });
    const next = await second().campaign("next");
    await expect(leadership.proclaim("still me")).rejects.toThrow(LeaseLostError);
    expect((await first().leader())?.value).toBe("next");
    await next.release();
    await expect(next.proclaim("gone")).rejects.toThrow(LeaseLostError);
    expect(await first().leader()).toBeNull();
  });

  test("the last of several concurrent proclamations wins", async () => {
    const leadership = await first().campaign("0");
    await Promise.all(["1", "2", "3", ""].map((value) => leadership.proclaim(value)));
    expect(leadership.value).toBe("");
    expect((await second().leader())?.value).toBe("");
    await leadership.release();
  });

  test("a value can be any string up to the size limit", async () => {
    const leadership = await first().campaign("");
    for (const value of ["two words", "line\nbreak\u0000nul", '{"json": "🔐"}', "x".repeat(65_536)]) {
      await leadership.proclaim(value);
      expect((await second().leader())?.value).toBe(value);
    }
    await expect(leadership.proclaim("x".repeat(65_537))).rejects.toThrow(RangeError);
    await expect(first().campaign(7 as unknown as string)).rejects.toThrow(TypeError);
    await leadership.release();
  });

  test("the key of the value far outlives the lease", async () => {
    const leadership = await first().campaign("steady", { leaseMs: SOON_MS });
    await leadership.extend(SOON_MS);
    const [key = ""] = (await scene.server.keysWith(scene.name)).filter((name) => name.endsWith(":value"));
    expect(await scene.server.pttl(key)).toBeGreaterThan(600_000);
    await leadership.release();
  });

  test("an observer sees the current leader, then each change, and null while there is no leader", async () => {
    const one = await first().campaign("one");
    const { seen, stop } = follow(second());
    const sees = (count: number, value: string | undefined): Promise<void> =>
      until(() => seen.length === count && seen.at(-1)?.value === value, `${count} states, the last ${value}`);
    await sees(1, "one");
    await one.proclaim("one and a half");
    await sees(2, "one and a half");
    await one.release();
    await sees(3, undefined);
    const two = await first().campaign("two");
    await sees(4, "two");
    expect(seen[3]).toMatchObject({ term: two.term, owner: two.owner });
    await first().forceRelease({ owner: two.owner });
    await sees(5, undefined);
    expect(await stop()).toBe("stopped");
  });

  test("an observer of an election without a leader sees null first", async () => {
    for await (const leader of first().observe()) {
      expect(leader).toBeNull();
      break;
    }
  });

  test("an observer sees null when the lease of the leader expires", () =>
    withLeaseInTime(async (leaseMs) => {
      const one = await first().campaign("mortal", { leaseMs, renew: false, waitMs: LONG_MS });
      const { seen, stop } = follow(second());
      try {
        await until(() => seen.at(-1) === null, "the leader's term to end");
        expect(seen.map((leader) => leader?.value)).toEqual(["mortal", undefined]);
        expect(one.validForMs()).toBe(0);
      } finally {
        await stop();
      }
    }));

  test("a slow observer sees the latest state and skips earlier ones", async () => {
    const leadership = await first().campaign("0");
    const states: (string | undefined)[] = [];
    for await (const leader of second().observe()) {
      states.push(leader?.value);
      if (leader?.value === "50") break;
      if (states.length === 1) for (let i = 1; i <= 50; i += 1) await leadership.proclaim(`${i}`);
    }
    expect(states[0]).toBe("0");
    expect(states.at(-1)).toBe("50");
    expect(states.length).toBeLessThan(20);
    await leadership.release();
  });

  test("close ends an observation without an error", async () => {
    const holdfast = await scene.another();
    const { seen, done } = follow(holdfast.election(scene.name));
    await until(() => seen.length === 1, "the first state");
    await holdfast.close();
    expect(await done).toBeUndefined();
  });

  test("an observation with an aborted signal fails immediately", async () => {
    const states = first().observe({ signal: AbortSignal.abort("too late") });
    await expect(states.next()).rejects.toBe("too late");
  });

  test("the delay of a candidate counts toward waitMs, and an abort or close ends it", async () => {
    const leadership = await first().campaign("delayed", { delayMs: 20 });
    const startedAtMs = performance.now();
    await expect(second().campaign("late", { delayMs: LONG_MS, waitMs: 50 })).rejects.toMatchObject({
      code: "ERR_LOCK_ACQUIRE_TIMEOUT",
    });
    expect(performance.now() - startedAtMs).toBeLessThan(LONG_MS);
    const controller = new AbortController();
    const standing = second().campaign("x", { delayMs: 1e9, waitMs: Infinity, signal: controller.signal });
    controller.abort("not today");
    await expect(standing).rejects.toBe("not today");
    await expect(first().campaign("x", { delayMs: -1 })).rejects.toThrow(RangeError);
    await expect(first().campaign("x", { delayMs: Infinity })).rejects.toThrow(RangeError);
    const closing = await scene.another();
    const closed = closing.election(scene.name).campaign("x", { delayMs: 1e9, waitMs: Infinity });
    closed.catch(() => {});
    await closing.close();
    await expect(closed).rejects.toThrow(ClosedError);
    await leadership.release();
  });

  test("an adopted leadership keeps its term and value, and observers see the new owner", async () => {
    const leadership = await first().campaign("moving");
    const { seen, stop } = follow(second());
    await until(() => seen.length === 1, "the first owner");
    const wire = JSON.stringify(leadership.export());
    const adopted = (await scene.rivalHoldfast.adopt(JSON.parse(wire) as ExportedLease)) as Leadership;
    expect(adopted.value).toBe("moving");
    expect(adopted.term).toBe(leadership.term);
    await until(() => seen.at(-1)?.owner === adopted.owner, "the second owner");
    await adopted.proclaim("moved");
    expect(await first().leader()).toMatchObject({ value: "moved", term: leadership.term, owner: adopted.owner });
    await adopted.release();
    await stop();
  });

  test("only a leadership of this election can resign or proclaim", async () => {
    const other = await scene.holdfast.election(`${scene.name}:other`).campaign("other");
    await expect(first().resign(other)).rejects.toThrow(TypeError);
    await expect(first().proclaim(other, "x")).rejects.toThrow(TypeError);
    await other.release();
  });

  test("run and tryAcquire lead with the given value", async () => {
    const seen = await first().run(async () => (await second().leader())?.value, { value: "running" });
    expect(seen).toBe("running");
    expect(await second().leader()).toBeNull();
    const maybe = await second().tryAcquire({ value: "tried" });
    expect((await first().leader())?.value).toBe("tried");
    expect(await first().tryAcquire({ value: "refused" })).toBeNull();
    await maybe?.release();
  });
}

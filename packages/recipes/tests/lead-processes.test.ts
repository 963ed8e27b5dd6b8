/** Leaders in separate processes that are killed, frozen or terminated, and many candidates at the same time. */

import type { Leader, Leadership } from "holdfast";
import { describe, expect, test, vi } from "vitest";
import { type Program, startProgram } from "../../../tests/support/program.js";
import { lead } from "../src/index.js";
import { eventually, follow, heeding, useLeadScene } from "./lead-scene.js";
import { endsAtMs, expectTakeover, serverMs } from "./takeover.js";

/** Longest time from SIGTERM to the next leader. The target is one second; the rest allows for a busy machine. */
const RESIGNED_MS = 5_000;
const scene = useLeadScene();

function program(): Program {
  const { server, name } = scene;
  return startProgram(new URL("./programs/leader.mjs", import.meta.url), { port: server.port, name });
}

/** Starts a process that leads and one that waits behind it. */
async function leaderAndNext(how: object): Promise<{
  leader: Program;
  next: Program;
  term: number;
  answer: Promise<unknown>;
  following: Promise<unknown>;
}> {
  const [leader, next] = [program(), program()];
  // Registered first, because on a slow machine the second process may lead earlier than intended.
  const following = next.heard("leading");
  const leading = leader.heard("leading");
  const answer = leader.call("lead", { value: "first", mark: `${scene.name}:mark`, ...how });
  answer.catch(() => {});
  const term = (await leading) as number;
  next.call("lead", { value: "next", mark: `${scene.name}:mark`, ...how }).catch(() => {});
  const election = scene.another().election(scene.name);
  await vi.waitFor(async () => expect((await election.inspect()).waiterCount).toBe(1), eventually);
  return { leader, next, term, answer, following };
}

// Processes start slowly on a busy machine.
describe("a leader", { timeout: 60_000 }, () => {
  test("that is killed is succeeded soon after its lease expires, in a higher term", async () => {
    const { leader, next, term, following } = await leaderAndNext({ leaseMs: 3_000 });
    try {
      const observer = follow(scene.another().election(scene.name));
      await leader.kill();
      const leaseMs = await endsAtMs(scene.redis, `hf:election:{${scene.name}}`);
      const second = (await following) as number;
      expect(second).toBeGreaterThan(term);
      expectTakeover(second, { leaseMs });
      await vi.waitFor(() => expect(observer.seen.at(-1)).toMatchObject({ term: second, transitions: 1 }), eventually);
      const led = observer.seen.filter((each): each is Leader => each !== null).map((each) => each.term);
      expect(led).toEqual(led.toSorted((a, b) => a - b));
      await observer.stop();
    } finally {
      await Promise.all([leader.kill(), next.kill()]);
    }
  });

  test("that receives SIGTERM resigns long before its lease would expire", async ({ annotate }) => {
    const { leader, next, term, answer, following } = await leaderAndNext({ leaseMs: 600_000 });
    try {
      const resigned = leader.heard("resigned");
      const toldMs = await serverMs(scene.redis);
      process.kill(leader.pid, "SIGTERM");
      const second = (await following) as number;
      expect(second).toBeGreaterThan(term);
      // A term is the server time of its grant in microseconds.
      const afterMs = second / 1_000 - toldMs;
      await annotate(`the next one leads ${Math.round(afterMs)} ms after SIGTERM`);
      expect(afterMs).toBeLessThan(RESIGNED_MS);
      expect(await resigned).toEqual({ role: "leader", outcome: "released" });
      expect(await answer).toEqual({ error: undefined });
    } finally {
      await Promise.all([leader.kill(), next.kill()]);
    }
  });

  test("that was frozen beyond its lease knows as soon as it resumes that it no longer leads", async () => {
    const [leader, next] = [program(), program()];
    try {
      const leading = leader.heard("leading");
      const thawed = leader.heard("thawed");
      const how = { leaseMs: 500, mark: `${scene.name}:mark` };
      const answer = leader.call("lead", { ...how, value: "first", spins: true });
      const term = (await leading) as number;
      leader.freeze();
      const following = next.heard("leading");
      next.call("lead", { ...how, value: "next" }).catch(() => {});
      expect((await following) as number).toBeGreaterThan(term);
      leader.resume();
      expect(await thawed).toEqual({ isHeld: false, role: "follower", isAborted: true });
      expect(await answer).toEqual({ error: "WorkLostError" });
    } finally {
      await Promise.all([leader.kill(), next.kill()]);
    }
  });
});

test("of 50 concurrent candidates, one leads at a time and each leads once", { timeout: 60_000 }, async () => {
  const terms: number[] = [];
  let leading = 0;
  let most = 0;
  const work = async ({ term }: Leadership): Promise<void> => {
    most = Math.max(most, ++leading);
    terms.push(term);
    await new Promise((resolve) => setTimeout(resolve, 1));
    leading -= 1;
  };
  await Promise.all(
    Array.from({ length: 50 }, () => lead(scene.another().election(scene.name), work, { delayMaxMs: 5 })),
  );
  expect([terms.length, most]).toEqual([50, 1]);
  expect(terms).toEqual(terms.toSorted((a, b) => a - b));
});

test("no timer remains after a term once the Holdfast is closed", async () => {
  const timers = (): number => process.getActiveResourcesInfo().filter((each) => each === "Timeout").length;
  const before = timers();
  const holdfast = scene.another();
  const leading = lead(holdfast.election(scene.name), heeding(), { delayMaxMs: 0 });
  await vi.waitFor(() => expect(holdfast.election(scene.name).health(0).role).toBe("leader"), eventually);
  await holdfast.election(scene.name).resign();
  await leading;
  await holdfast.close();
  // Waits with setImmediate, because a timer would be counted.
  for (const giveUpAtMs = Date.now() + eventually.timeout; timers() > before && Date.now() < giveUpAtMs; ) {
    await new Promise((resolve) => setImmediate(resolve));
  }
  expect(timers()).toBeLessThanOrEqual(before);
});

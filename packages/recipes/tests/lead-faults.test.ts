/** Leaders when the network or the server fails. */

import { createHoldfast, type Leader, type Leadership } from "holdfast";
import { Redis } from "ioredis";
import { describe, expect, test, vi } from "vitest";
import { startSentinel } from "../../../tests/support/redis-sentinel.js";
import { startRedis } from "../../../tests/support/redis-server.js";
import { electionProclaim, electionResign, mutexAcquire } from "../../holdfast/src/generated/scripts.js";
import { withLeaseInTime } from "../../holdfast/src/testing/delays.js";
import { lead } from "../src/index.js";
import { eventually, follow, heeding, held, useLeadScene } from "./lead-scene.js";

const scene = useLeadScene();
const NOW = { delayMaxMs: 0 } as const;

function callsOf({ sha1 }: { readonly sha1: string }): (words: readonly string[]) => boolean {
  return (words) => words[1] === sha1 && words.some((word) => word.includes(scene.name));
}

/** Loads the scripts into the server, so that each later call is one request. */
async function warm(holdfast: ReturnType<typeof scene.another>): Promise<void> {
  await lead(holdfast.election(`warm ${Math.random()}`), (leadership) => leadership.proclaim("x"), NOW);
}

describe("a lost reply", () => {
  test.each([
    ["the grant", mutexAcquire],
    ["the first value", electionProclaim],
    ["the resignation", electionResign],
  ])("for %s changes nothing, and the term counts once", async (_, script) => {
    const proxy = await scene.proxy();
    const holdfast = scene.another(proxy.port);
    const election = holdfast.election(scene.name);
    const other = scene.another().election(scene.name);
    await warm(holdfast);
    const struck = proxy.cutBeforeReply(callsOf(script));
    const terms: number[] = [];
    const work = async ({ term }: Leadership): Promise<string> => {
      terms.push(term);
      expect(await other.leader()).toMatchObject({ term, transitions: 0, value: "first" });
      return "led";
    };
    expect(await lead(election, work, { value: "first", ...NOW })).toBe("led");
    await struck;
    expect([terms.length, proxy.counts.lostReplies]).toEqual([1, 1]);
    const next = await other.campaign("second");
    expect(await other.leader()).toMatchObject({ term: next.term, transitions: 1 });
  });
});

test("a candidate that learns of its term after its lease expired starts no work and campaigns again", async () => {
  const proxy = await scene.proxy();
  const holdfast = scene.another(proxy.port);
  await warm(holdfast);
  const answer = proxy.holdReply(callsOf(electionProclaim));
  const wereValid: boolean[] = [];
  const work = (leadership: Leadership): void => void wereValid.push(leadership.validForMs() > 0);
  const leading = lead(holdfast.election(scene.name), work, { value: "first", leaseMs: 4_000, ...NOW });
  await Promise.race([answer.reached, leading]);
  await vi.waitFor(async () => expect(await scene.redis.exists(`hf:election:{${scene.name}}`)).toBe(0), eventually);
  answer.release();
  await leading;
  expect(wereValid).toEqual([true]);
});

test("candidates succeed each other even if every message is lost", async () => {
  const proxy = await scene.proxy();
  proxy.dropMessages(true);
  const [first, second] = [scene.another(proxy.port), scene.another(proxy.port)];
  const running = held<number>();
  const leading = lead(first.election(scene.name), running.work, { leaseMs: 5_000, ...NOW });
  await running.began;
  const next = lead(second.election(scene.name), () => 2, { leaseMs: 5_000, ...NOW });
  await vi.waitFor(async () => expect((await first.election(scene.name).inspect()).waiterCount).toBe(1), eventually);
  running.end(1);
  expect(await leading).toBe(1);
  expect(await next).toBe(2);
  expect(proxy.counts.droppedMessages).toBeGreaterThan(0);
}, 60_000);

describe.each(["the delay", "the grant", "the first value", "the work", "the release"])(
  "an abort during %s",
  (when) => {
    test("ends the call, resigns, and calls `stopped` if `started` was called", async () => {
      const proxy = await scene.proxy();
      const holdfast = scene.another(proxy.port);
      await warm(holdfast);
      const election = holdfast.election(scene.name);
      const controller = new AbortController();
      const told: string[] = [];
      const scripts = { "the grant": mutexAcquire, "the first value": electionProclaim, "the release": electionResign };
      const script = scripts[when as keyof typeof scripts];
      const hold = script && proxy.hold(callsOf(script));
      const leading = lead(
        election,
        async ({ signal }) => {
          if (when === "the release") return "worked";
          await new Promise((resolve) => signal.addEventListener("abort", resolve));
          throw signal.reason;
        },
        {
          signal: controller.signal,
          delayMaxMs: when === "the delay" ? 86_400_000 : 0,
          started: () => void told.push("started"),
          stopped: (_, end) => void told.push(end),
        },
      );
      await hold?.reached;
      if (when === "the work") await vi.waitFor(() => expect(told).toEqual(["started"]), eventually);
      controller.abort(new Error("stop"));
      hold?.release();
      expect(await leading).toBe(when === "the release" ? "worked" : undefined);
      const other = scene.another().election(scene.name);
      const next = await other.campaign("next", { waitMs: 30_000 });
      await next.release();
      const pairs = {
        "the work": ["started", "aborted"],
        "the release": ["started", expect.stringMatching(/returned|aborted/)],
      };
      expect(told).toEqual(pairs[when as keyof typeof pairs] ?? []);
    });
  },
);

test("a flapping network does not change the leader, and the transition after it counts once", async () => {
  await withLeaseInTime(async (leaseMs) => {
    const name = `${scene.name} ${leaseMs}`;
    const proxy = await scene.proxy();
    const flapping = scene.another(proxy.port).election(name);
    const other = scene.another().election(name);
    const observer = follow(other);
    const running = held<void>();
    const leading = lead(flapping, running.work, { leaseMs, ...NOW });
    const first = await running.began;
    const next = held<void>();
    const succeeding = lead(other, next.work, NOW);
    try {
      for (let cut = 0; cut < 20; cut += 1) {
        proxy.cutAll();
        await new Promise((resolve) => setTimeout(resolve, leaseMs / 10));
      }
      first.assertHeld();
      expect(await other.leader()).toMatchObject({ term: first.term, transitions: 0 });
      proxy.refuse(true);
      proxy.cutAll();
      // The lease is first still valid without a connection, then lost.
      let wasUnsure = false;
      await vi.waitFor(() => {
        const { role } = flapping.health(0);
        wasUnsure ||= role === "unsure";
        expect(role).toBe("follower");
      }, eventually);
      expect(wasUnsure).toBe(true);
      expect(first.signal.aborted).toBe(true);
      const second = await next.began;
      proxy.refuse(false);
      running.end();
      await expect(leading).rejects.toMatchObject({ code: "ERR_LOCK_LEASE_LOST" });
      expect(await other.leader()).toMatchObject({ term: second.term, transitions: 1 });
      await vi.waitFor(() => expect(observer.seen.at(-1)).toMatchObject({ term: second.term }), eventually);
      expect(observer.seen.flatMap((each) => each?.term ?? [])).toEqual([first.term, second.term]);
    } finally {
      running.end();
      next.end();
      await Promise.allSettled([leading, succeeding]);
      await observer.stop();
    }
  }, 1_500);
}, 120_000);

describe("a server restart", { timeout: 60_000 }, () => {
  test("without data makes the leader campaign again, and observers see only the terms in order", async () => {
    const server = await startRedis();
    const clients = [0, 1].map(() => new Redis({ port: server.port, retryStrategy: () => 20 }));
    for (const client of clients) client.on("error", () => {});
    const [holdfast, watching] = clients.map((redis) => createHoldfast({ redis, failoverGrace: "off" })) as [
      ReturnType<typeof createHoldfast>,
      ReturnType<typeof createHoldfast>,
    ];
    try {
      const observer = follow(watching.election("x"));
      const terms: number[] = [];
      const ends: string[] = [];
      const stop = new AbortController();
      const leading = lead(
        holdfast.election("x"),
        async (leadership) => {
          await heeding(({ term }) => terms.push(term))(leadership);
          throw leadership.signal.reason;
        },
        { leaseMs: 10_000, rejoin: true, signal: stop.signal, stopped: (_, end) => void ends.push(end), ...NOW },
      );
      await vi.waitFor(() => expect(observer.seen.at(-1)).toMatchObject({ term: terms[0] }), eventually);
      await server.restart();
      await vi.waitFor(() => expect(terms).toHaveLength(2), eventually);
      await vi.waitFor(() => expect(observer.seen.at(-1)).toMatchObject({ term: terms[1] }), eventually);
      expect(terms[1]).toBeGreaterThan(terms[0] as number);
      expect(ends).toEqual(["lost"]);
      stop.abort();
      await leading;
      await vi.waitFor(() => expect(observer.seen.at(-1)).toBeNull(), eventually);
      expect(observer.seen.flatMap((each) => each?.term ?? [])).toEqual(terms);
      await observer.stop();
    } finally {
      await Promise.all([holdfast.close(), watching.close()]);
      for (const client of clients) client.disconnect();
      await server.stop();
    }
  });

  test("with its data keeps the leader, and observers see no new term", async () => {
    const server = await startRedis({ persist: true });
    const clients = [0, 1].map(() => new Redis({ port: server.port, retryStrategy: () => 20 }));
    for (const client of clients) client.on("error", () => {});
    const [holdfast, watching] = clients.map((redis) => createHoldfast({ redis })) as [
      ReturnType<typeof createHoldfast>,
      ReturnType<typeof createHoldfast>,
    ];
    try {
      const observer = follow(watching.election("x"));
      const running = held<string>();
      const leading = lead(holdfast.election("x"), running.work, { leaseMs: 60_000, ...NOW });
      const first = await running.began;
      await vi.waitFor(() => expect(observer.seen.at(-1)).toMatchObject({ term: first.term }), eventually);
      await server.restart();
      await vi.waitFor(() => first.proclaim("after"), eventually);
      await vi.waitFor(() => expect(observer.seen.at(-1)).toMatchObject({ value: "after" }), eventually);
      expect(observer.seen.flatMap((each) => each?.term ?? [])).toEqual([first.term, first.term]);
      running.end("went on");
      expect(await leading).toBe("went on");
      await observer.stop();
    } finally {
      await Promise.all([holdfast.close(), watching.close()]);
      for (const client of clients) client.disconnect();
      await server.stop();
    }
  });
});

test("an observer never reports an older term, even if the server returns one", async () => {
  const election = scene.another().election(scene.name);
  const observer = follow(scene.another().election(scene.name));
  const first = await election.campaign("old");
  await vi.waitFor(() => expect(observer.seen.at(-1)).toMatchObject({ term: first.term }), eventually);
  const keys = await scene.redis.keys(`hf:election:{${scene.name}}*`);
  const old = await Promise.all(keys.map(async (key) => [key, await scene.redis.dumpBuffer(key)] as const));
  await first.release();
  const second = await election.campaign("new");
  await vi.waitFor(() => expect(observer.seen.at(-1)).toMatchObject({ term: second.term }), eventually);
  for (const [key, bytes] of old) {
    if (bytes !== null) await scene.redis.restore(key, 60_000, bytes, "REPLACE");
  }
  expect(await election.leader()).toMatchObject({ term: first.term });
  await scene.redis.publish(`hf:election:{${scene.name}}:leader`, "changed");
  await vi.waitFor(() => expect(observer.seen.at(-1)).toBeNull(), eventually);
  expect(observer.seen.flatMap((each) => (each as Leader | null)?.term ?? [])).toEqual([first.term, second.term]);
  await observer.stop();
});

test("one candidate leads at a time with rising terms when Sentinel replaces the master", {
  timeout: 120_000,
}, async () => {
  const topology = await startSentinel({ downAfterMs: 60_000 });
  const holdfasts: { holdfast: ReturnType<typeof createHoldfast>; redis: Redis }[] = [];
  const stop = new AbortController();
  try {
    const terms: number[] = [];
    let leading = 0;
    let most = 0;
    for (let i = 0; i < 2; i += 1) {
      const redis = new Redis({
        sentinels: [...topology.addresses],
        name: topology.name,
        sentinelRetryStrategy: () => 50,
      });
      redis.on("error", () => {});
      holdfasts.push({ redis, holdfast: createHoldfast({ redis }) });
    }
    const candidates = holdfasts.map(({ holdfast }) =>
      lead(
        holdfast.election("x"),
        async (leadership) => {
          most = Math.max(most, ++leading);
          terms.push(leadership.term);
          await heeding()(leadership);
          leading -= 1;
        },
        { leaseMs: 2_000, rejoin: true, signal: stop.signal, ...NOW },
      ),
    );
    await vi.waitFor(() => expect(terms).toHaveLength(1), eventually);
    const old = await topology.master();
    await topology.failover();
    await vi.waitFor(async () => expect((await topology.master()).id).not.toBe(old.id), eventually);
    // The current leader registers with the new master.
    const election = holdfasts[0]?.holdfast.election("x");
    await vi.waitFor(async () => expect(await election?.leader()).toMatchObject({ term: terms.at(-1) }), {
      timeout: 60_000,
      interval: 50,
    });
    await holdfasts
      .find(({ holdfast }) => holdfast.held().length > 0)
      ?.holdfast.election("x")
      .resign();
    await vi.waitFor(() => expect(terms.length).toBeGreaterThan(1), eventually);
    stop.abort();
    await Promise.all(candidates);
    expect(most).toBe(1);
    expect(terms).toEqual([...new Set(terms)].toSorted((a, b) => a - b));
  } finally {
    stop.abort();
    for (const { holdfast, redis } of holdfasts) {
      await holdfast.close();
      redis.disconnect();
    }
    await topology.stop();
  }
});

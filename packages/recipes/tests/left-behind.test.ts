/** No recipe leaves listeners, timers or keys without expiry behind, no matter how it ends. */
import { randomUUID } from "node:crypto";
import { getEventListeners } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { closeOnSignal, createHoldfast, type Holdfast } from "holdfast";
import { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { type RedisServer, startRedis } from "../../../tests/support/redis-server.js";
import {
  cache,
  coalesce,
  counter,
  fencedSet,
  fenceGuard,
  keyed,
  lead,
  once,
  scheduled,
  versioned,
  workerSlot,
} from "../src/index.js";
import { eventually, held } from "./queue-scene.js";

vi.setConfig({ testTimeout: 240_000, hookTimeout: 240_000 });

/** The work of the recipe. The test decides how it ends. */
type Work = (lease?: { readonly signal: AbortSignal }) => Promise<string>;
interface Use {
  readonly holdfast: Holdfast;
  readonly name: string;
  readonly work: Work;
  readonly signal: AbortSignal;
}
interface Recipe {
  readonly use: (use: Use) => Promise<unknown>;
  /** Whether a second caller waits. Otherwise it is refused or runs at the same time. */
  readonly waits?: boolean;
  /** Keys that stay until they are deleted. */
  readonly stays?: RegExp;
}

const waitMs = 60_000;
const RECIPES: Readonly<Record<string, Recipe>> = {
  once: {
    waits: true,
    use: ({ holdfast, name, work, signal }) => once(holdfast, name, work, { signal, waitMs }),
  },
  lead: {
    waits: true,
    use: ({ holdfast, name, work, signal }) => lead(holdfast.election(name), work, { signal, delayMaxMs: 0 }),
  },
  scheduled: {
    use: ({ holdfast, name, work, signal }) => scheduled(holdfast, name, work, { everyMs: 60_000, signal })(),
  },
  cache: {
    waits: true,
    use: ({ holdfast, name, work, signal }) => cache<string>(holdfast, name).get("one", work, { signal, waitMs }),
  },
  keyed: {
    waits: true,
    use: ({ holdfast, name, work, signal }) =>
      keyed(holdfast, "left").run(name, work, { signal, waitMs, eventId: randomUUID() }),
  },
  "coalesce, newest": {
    waits: true,
    use: ({ holdfast, name, work, signal }) => coalesce(holdfast, name, work, { signal, mode: "newest" }),
  },
  "coalesce, join": {
    waits: true,
    use: ({ holdfast, name, work, signal }) => coalesce(holdfast, name, work, { signal, mode: "join" }),
  },
  "a worker's number": {
    waits: true,
    use: async ({ holdfast, name, work, signal }) => {
      await using slot = await workerSlot(holdfast, name, { count: 1, signal, waitMs });
      return await work(slot);
    },
  },
  "a fenced write": {
    waits: true,
    use: ({ holdfast, name, work, signal }) =>
      holdfast.mutex(name).run(
        async (lease) => {
          const value = await fenceGuard().run(name, lease, () => work(lease));
          await fencedSet(holdfast, { key: `data:${name}`, value, lease });
        },
        { signal, waitMs },
      ),
    // The value and the token with which it was written.
    stays: /data:/,
  },
  versioned: {
    use: ({ holdfast, name, work, signal }) => versioned<string>(holdfast, name).update(() => work(), { signal }),
    stays: /:versioned:/,
  },
  "versioned, watched": {
    use: async ({ holdfast, name, work, signal }) => {
      const value = versioned<string>(holdfast, name);
      await value.update(() => "first");
      for await (const _ of value.watch({ signal })) return await work();
      return undefined;
    },
    stays: /:versioned:/,
  },
  counter: {
    use: async ({ holdfast, name, work }) => {
      await counter(holdfast, name).put(3, { requestId: "delivery" });
      await counter(holdfast, name).take(1, { requestId: "sale" });
      await work();
    },
    stays: /:counter:/,
  },
  pause: {
    use: async ({ holdfast, name, work }) => {
      await holdfast.pause(name, { label: "moved", by: "ana", untilAtMs: Date.now() + 600_000 });
      try {
        await work();
      } finally {
        await holdfast.resume(name, { by: "ana" });
      }
    },
  },
  "closing on a signal": {
    use: async ({ holdfast, name, work, signal }) => {
      const stop = closeOnSignal(holdfast, ["SIGUSR2"]);
      try {
        return await holdfast.mutex(name).run(work, { signal });
      } finally {
        stop();
      }
    },
  },
};

let server: RedisServer;
let redis: Redis;
const clients: Redis[] = [];
const open: Holdfast[] = [];
let name: string;
let before: { timers: number; process: number };

beforeAll(async () => {
  server = await startRedis();
  redis = new Redis({ port: server.port });
});

afterAll(async () => {
  redis?.disconnect();
  await server?.stop();
});

beforeEach(async () => {
  name = randomUUID();
  await redis.ping();
  before = { timers: timers(), process: listeners(process) };
});

afterEach(async () => {
  await Promise.all(open.splice(0).map((each) => each.close()));
  for (const client of clients.splice(0)) client.disconnect();
});

function timers(): number {
  return process.getActiveResourcesInfo().filter((each) => each === "Timeout").length;
}

function listeners(of: { eventNames(): (string | symbol)[]; listenerCount(event: string | symbol): number }): number {
  return of.eventNames().reduce((count, event) => count + of.listenerCount(event), 0);
}

async function another(): Promise<{ holdfast: Holdfast; client: Redis; listened: number }> {
  const client = new Redis({ port: server.port });
  clients.push(client);
  await client.ping();
  const listened = listeners(client);
  const holdfast = createHoldfast({ redis: client });
  open.push(holdfast);
  return { holdfast, client, listened };
}

interface Party {
  readonly holdfast: Holdfast;
  readonly client: Redis;
  readonly listened: number;
}

async function expectNothingLeft(
  { signal, stays }: { readonly signal: AbortSignal; readonly stays: RegExp | undefined },
  ...parties: readonly Party[]
): Promise<void> {
  await vi.waitFor(() => expect(getEventListeners(signal, "abort")).toEqual([]), eventually);
  for (const { holdfast } of parties) await vi.waitFor(() => expect(holdfast.held()).toEqual([]), eventually);
  for (const key of await redis.keys(`*${name}*`)) {
    if (stays?.test(key) !== true) expect(await redis.pttl(key), key).not.toBe(-1);
  }
  await Promise.all(parties.map(({ holdfast }) => holdfast.close()));
  await vi.waitFor(async () => expect(await redis.pubsub("CHANNELS", `*${name}*`)).toEqual([]), eventually);
  for (const { client, listened } of parties) expect(listeners(client)).toBe(listened);
  expect(listeners(process)).toBe(before.process);
  // Waits with setImmediate, because a timer would be counted.
  for (const giveUpAtMs = Date.now() + eventually.timeout; timers() > before.timers && Date.now() < giveUpAtMs; ) {
    await new Promise((resolve) => setImmediate(resolve));
  }
  expect(timers()).toBeLessThanOrEqual(before.timers);
}

describe.each(Object.entries(RECIPES))("%s leaves nothing behind", (_, { use, stays }) => {
  test("when the work is done", async () => {
    const party = await another();
    const { signal } = new AbortController();
    await use({ ...party, name, signal, work: async () => "done" });
    await expectNothingLeft({ signal, stays }, party);
  });

  test("when the work fails", async () => {
    const party = await another();
    const { signal } = new AbortController();
    const why = new Error("the work failed");
    const ended = use({ ...party, name, signal, work: () => Promise.reject(why) });
    await ended.catch((error: unknown) => expect([error, (error as Error).cause]).toContain(why));
    await expectNothingLeft({ signal, stays }, party);
  });
});

const WITH_WAITERS = Object.entries(RECIPES).filter(([, { waits }]) => waits);

describe.each(WITH_WAITERS)("%s leaves nothing behind", (_, { use, stays }) => {
  test("when a caller gives up waiting", async () => {
    const [first, second] = [await another(), await another()];
    const kept = new AbortController();
    const given = new AbortController();
    const running = held<string>();
    const ended = use({ ...first, name, signal: kept.signal, work: running.work });
    await running.began;
    const why = new Error("the caller has gone");
    const waiting = use({ ...second, name, signal: given.signal, work: async () => "second" });
    // The abort must work in whichever state the caller is by then.
    await sleep(50);
    given.abort(why);
    await waiting.catch((error: unknown) => expect(error).toBe(why));
    await vi.waitFor(() => expect(getEventListeners(given.signal, "abort")).toEqual([]), eventually);
    running.end("done");
    await ended;
    await expectNothingLeft({ signal: kept.signal, stays }, first, second);
  });
});

/** Requests with a key while the server loses its data, fails over or drops messages. */
import { randomUUID } from "node:crypto";
import { createHoldfast, type Holdfast } from "holdfast";
import { Redis } from "ioredis";
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { startSentinel } from "../../../tests/support/redis-sentinel.js";
import { startRedis } from "../../../tests/support/redis-server.js";
import { startProxy } from "../../../tests/support/tcp-proxy.js";
import { deferred } from "../../holdfast/src/testing/delays.js";
import { onceKeyOf } from "../src/fingerprint.js";
import { ADAPTERS, type Plan } from "./adapters.js";
import { post, type Reply } from "./client.js";

let key: string;
let open: (() => unknown)[];

beforeEach(() => {
  key = randomUUID();
  open = [];
});
afterEach(async () => {
  for (const close of open.toReversed()) await close();
});

function holdfastOn(redis: Redis): Holdfast {
  redis.on("error", () => {});
  const holdfast = createHoldfast({ redis });
  open.push(
    () => redis.disconnect(),
    () => holdfast.close(),
  );
  return holdfast;
}

/** A handler that runs until `end` is called. */
function held(): { handle: ReturnType<typeof vi.fn>; began: Promise<void>; end: () => void } {
  const [began, ended] = [deferred<void>(), deferred<void>()];
  const handle = vi.fn(async () => {
    began.resolve();
    await ended.promise;
    return { status: 201, body: { run: handle.mock.calls.length } };
  });
  return { handle: handle as never, began: began.promise, end: () => ended.resolve() };
}

describe.each(ADAPTERS)("$name", (adapter) => {
  async function serve(holdfast: Holdfast, plan: Plan): Promise<string> {
    const site = await adapter.serve(holdfast, plan);
    open.push(() => site.close());
    return site.url;
  }

  test("a waiter whose notification is lost still gets the recorded response", async () => {
    const server = await startRedis();
    const proxy = await startProxy(server.port);
    open.push(
      () => server.stop(),
      () => proxy.close(),
    );
    proxy.dropMessages(true);
    const { handle, began, end } = held();
    const plan: Plan = { handle: handle as never, options: { whenRunning: { waitMs: 60_000 } } };
    const redis = new Redis({ port: server.port });
    const near = await serve(holdfastOn(redis), plan);
    const far = await serve(holdfastOn(new Redis({ port: proxy.port })), plan);
    const first = post(near, { key, body: {} });
    await began;
    const waiting = post(far, { key, body: {} });
    const news = `hf:once:{/${onceKeyOf("POST", "/payments/:id", key)}}:ended`;
    await vi.waitFor(async () => expect(await redis.pubsub("NUMSUB", news)).toContain(1), { timeout: 15_000 });
    end();
    expect((await first).text).toBe('{"run":1}');
    const reply = await waiting;
    expect([reply.text, reply.headers["idempotency-replayed"]]).toEqual(['{"run":1}', "true"]);
    await vi.waitFor(() => expect(proxy.counts.droppedMessages).toBeGreaterThan(0), { timeout: 15_000 });
  });

  test("if the server restarts empty, the response is sent and marked as unstored", async () => {
    const server = await startRedis();
    open.push(() => server.stop());
    const { handle, began, end } = held();
    const url = await serve(holdfastOn(new Redis({ port: server.port, retryStrategy: () => 20 })), {
      handle: handle as never,
    });
    const first = post(url, { key, body: {} });
    await began;
    await server.kill();
    await server.restart();
    end();
    const reply = await first;
    expect([reply.status, reply.headers["idempotency-status"]]).toEqual([201, "unstored"]);
  });

  test("after a failover, the new master replays the recorded response", { timeout: 60_000 }, async () => {
    const topology = await startSentinel({ replicas: 1, downAfterMs: 60_000 });
    onTestFinished(() => topology.stop());
    const redis = new Redis({ sentinels: [...topology.addresses], name: topology.name });
    const { handle, end } = held();
    end();
    const url = await serve(holdfastOn(redis), { handle: handle as never });
    const first = await post(url, { key, body: {} });
    expect(first.status).toBe(201);
    await redis.wait(1, 15_000);
    await topology.failover();
    const answered: Reply[] = [];
    await vi.waitFor(
      async () => {
        const reply = await post(url, { key, body: {} });
        answered.push(reply);
        expect(reply.status).toBe(201);
      },
      { timeout: 45_000, interval: 100 },
    );
    // Every reply is 503 until the new master is up and grants again.
    expect(answered.slice(0, -1).every(({ status }) => status === 503)).toBe(true);
    expect(answered.at(-1)?.text).toBe('{"run":1}');
    expect(handle).toHaveBeenCalledTimes(1);
  });
});

/** Locked methods whose process crashes or freezes while they run, or whose server's reply is lost. */
import { Injectable, Module } from "@nestjs/common";
import { NestFactory } from "@nestjs/core";
import { ClosedError, type Lease } from "holdfast";
import { Redis } from "ioredis";
import { afterEach, expect, test, vi } from "vitest";
import { startProgram } from "../../../../tests/support/program.js";
import { startProxy } from "../../../../tests/support/tcp-proxy.js";
import { mutexAcquire } from "../../../holdfast/src/generated/scripts.js";
import { eventually, useQueueScene } from "../../../recipes/tests/queue-scene.js";
import { endsAtMs, expectTakeover, serverMs } from "../../../recipes/tests/takeover.js";
import { HeldLease, HoldfastModule, Locked } from "../../src/index.js";

const scene = useQueueScene();
const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

@Injectable()
class Invoices {
  readonly tokens: number[] = [];

  // The lease is long, so a waiter that misses its grant cannot pass by outwaiting the lease.
  @Locked({ name: (id: string) => `invoice:${id}`, leaseMs: 600_000, waitMs: 60_000 })
  async close(id: string, @HeldLease() lease?: Lease): Promise<string> {
    lease?.assertHeld();
    this.tokens.push(lease?.token ?? 0);
    return `closed ${id}`;
  }
}

async function invoicesOn(port: number): Promise<Invoices> {
  const client = new Redis({ port, retryStrategy: () => 20 });
  client.on("error", () => {});
  closing.push(() => client.disconnect());
  @Module({ imports: [HoldfastModule.forRoot({ redis: client })], providers: [Invoices] })
  class App {}
  const app = await NestFactory.createApplicationContext(App, { logger: false, abortOnError: false });
  closing.push(() => app.close());
  return app.get(Invoices);
}

test("if the process of a locked method is killed, the next caller runs when its lease ends", async () => {
  const { server, redis, holdfast, name: id } = scene;
  const invoices = await invoicesOn(server.port);
  const url = new URL("../programs/nest-service.mjs", import.meta.url);
  const dying = startProgram(url, { port: server.port, leaseMs: 1_000 });
  closing.push(() => dying.kill());
  const began = dying.heard("began");
  const killed = dying.call("close", { id });
  killed.catch(() => {});
  await Promise.race([began, killed]);
  const lock = holdfast.mutex(`invoice:${id}`);
  const [holder] = (await lock.inspect()).holders;
  await dying.kill();
  const leaseMs = await endsAtMs(redis, `hf:mutex:{invoice:${id}}`);
  const askedMs = await serverMs(redis);
  expect(await invoices.close(id)).toBe(`closed ${id}`);
  const [token = 0] = invoices.tokens;
  expect(token).toBeGreaterThan(holder?.token as number);
  expectTakeover(token, { leaseMs, askedMs });
});

test("a method whose grant reply is lost runs once and leaves nothing behind", async () => {
  const { server, redis, holdfast, name: id } = scene;
  const proxy = await startProxy(server.port);
  closing.push(() => proxy.close());
  const invoices = await invoicesOn(proxy.port);
  await invoices.close(`${id}/warm`);
  const struck = proxy.cutBeforeReply(new RegExp(`^evalsha ${mutexAcquire.sha1}`, "i"));
  expect(await invoices.close(id)).toBe(`closed ${id}`);
  await struck;
  expect(invoices.tokens).toHaveLength(2);
  expect((await holdfast.mutex(`invoice:${id}`).inspect()).holders).toEqual([]);
  for (const key of await redis.keys("hf:*")) expect(await redis.pttl(key), key).toBeGreaterThan(0);
});

test("a method that freezes past its lease fails with WorkLostError", async () => {
  const { server, holdfast, name: id } = scene;
  const url = new URL("../programs/nest-service.mjs", import.meta.url);
  const late = startProgram(url, { port: server.port, leaseMs: 500 });
  closing.push(() => late.kill());
  const began = late.heard("began");
  const closed = late.call("close", { id }).catch((error: unknown) => (error as Error).name);
  await began;
  late.freeze();
  const lease = await holdfast.mutex(`invoice:${id}`).acquire({ waitMs: 60_000, leaseMs: 600_000 });
  late.resume();
  await late.call("finish");
  expect(await closed).toBe("WorkLostError");
  expect(lease.validForMs()).toBeGreaterThan(0);
  await lease.release();
});

test("a waiting method whose notification is lost still gets the lock", async () => {
  const { server, holdfast, name: id } = scene;
  const proxy = await startProxy(server.port);
  closing.push(() => proxy.close());
  const invoices = await invoicesOn(proxy.port);
  const lock = holdfast.mutex(`invoice:${id}`);
  const lease = await lock.acquire({ leaseMs: 600_000 });
  const waiting = invoices.close(id);
  await vi.waitFor(async () => expect((await lock.inspect()).waiterCount).toBe(1), eventually);
  proxy.dropMessages(true);
  await lease.release();
  expect(await waiting).toBe(`closed ${id}`);
  await vi.waitFor(() => expect(proxy.counts.droppedMessages).toBeGreaterThan(0), eventually);
  expect((await lock.inspect()).holders).toEqual([]);
});

test("a waiting method is not called after its application shuts down, and leaves the queue", async () => {
  const { server, holdfast, name: id } = scene;
  const invoices = await invoicesOn(server.port);
  const lock = holdfast.mutex(`invoice:${id}`);
  const lease = await lock.acquire();
  const waiting = invoices.close(id);
  const refused = expect(waiting).rejects.toThrow(ClosedError);
  await vi.waitFor(async () => expect((await lock.inspect()).waiterCount).toBe(1), eventually);
  await closing.pop()?.();
  await refused;
  expect(invoices.tokens).toEqual([]);
  await vi.waitFor(async () => expect((await lock.inspect()).waiterCount).toBe(0), eventually);
  await lease.release();
  expect((await lock.inspect()).holders).toEqual([]);
});

test("a method that outlives its lease during an outage fails with its value", async () => {
  const { server, name: id } = scene;
  const proxy = await startProxy(server.port);
  closing.push(() => proxy.close());
  const client = new Redis({ port: proxy.port, retryStrategy: () => 20, maxRetriesPerRequest: 1 });
  client.on("error", () => {});
  closing.push(() => client.disconnect());

  @Injectable()
  class Slow {
    @Locked({ name: (name: string) => `slow:${name}`, leaseMs: 300 })
    async charge(_name: string, @HeldLease() lease?: Lease): Promise<string> {
      const { signal } = lease as Lease;
      proxy.refuse(true);
      proxy.cutAll();
      await new Promise((resolve) => signal.addEventListener("abort", resolve));
      return "charged";
    }
  }
  @Module({ imports: [HoldfastModule.forRoot({ redis: client, commandTimeoutMs: 200 })], providers: [Slow] })
  class App {}
  const app = await NestFactory.createApplicationContext(App, { logger: false, abortOnError: false });
  closing.push(() => app.close());
  await expect(app.get(Slow).charge(id)).rejects.toMatchObject({
    name: "WorkLostError",
    value: "charged",
    reason: "expired",
    lockName: `slow:${id}`,
  });
});

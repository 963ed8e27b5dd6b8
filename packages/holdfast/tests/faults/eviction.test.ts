/** A real server that may evict locks, and one that hides its eviction policy. */
import { once } from "node:events";
import { Redis } from "ioredis";
import { afterEach, beforeEach, expect, test } from "vitest";
import { startMonitor } from "../../../../tests/support/monitor.js";
import { mutexAcquire, serverMemory } from "../../src/generated/scripts.js";
import { createHoldfast, EvictionError } from "../../src/index.js";
import { glide, ioredis, nodeRedis, useFaultScene } from "./scene.js";

const scene = useFaultScene();

const warnings: (Error & { readonly code?: string; readonly detail?: string })[] = [];
const collect = (warning: Error): void => void warnings.push(warning);
beforeEach(() => {
  warnings.length = 0;
  process.on("warning", collect);
});
afterEach(() => {
  process.off("warning", collect);
});

async function evicting(policy: string): Promise<void> {
  await scene.server.command("CONFIG", "SET", "maxmemory", "100mb");
  await scene.server.command("CONFIG", "SET", "maxmemory-policy", policy);
}

test.each([ioredis, nodeRedis, glide])("on $name, acquire fails if the server may evict locks", async (library) => {
  await evicting("volatile-lru");
  const holdfast = await scene.client(library);
  const refused = { code: "ERR_LOCK_EVICTION", policy: "volatile-lru", maxmemoryBytes: 104_857_600 };
  await expect(holdfast.mutex(scene.name).acquire()).rejects.toMatchObject(refused);
  expect(await scene.holder(), "nothing is left behind").toBeNull();
  await expect(holdfast.mutex(scene.name).tryAcquire()).rejects.toMatchObject(refused);
  await expect(holdfast.mutex(scene.name).run(() => "worked")).rejects.toBeInstanceOf(EvictionError);
  await expect(holdfast.multiLock([scene.name, "other"]).acquire()).rejects.toMatchObject(refused);
  await expect(holdfast.semaphore(scene.name, { permits: 2 }).acquire()).rejects.toMatchObject(refused);
  await expect(holdfast.countDownLatch(scene.name).await()).rejects.toMatchObject(refused);
  await expect(holdfast.barrier(scene.name, { parties: 1 }).arrive()).rejects.toMatchObject(refused);
  await expect(holdfast.election(scene.name).campaign("x")).rejects.toMatchObject(refused);

  await scene.server.command("CONFIG", "SET", "maxmemory-policy", "noeviction");
  expect(await holdfast.mutex(scene.name).run(() => "worked"), "mended without a restart").toBe("worked");
  expect(warnings).toEqual([]);
});

test("with allowEviction, locks are granted and the server's policy is not read", async () => {
  await evicting("allkeys-lru");
  const { sent, stop } = await startMonitor(scene.server);
  const holdfast = await scene.client(ioredis, { allowEviction: true });
  expect(await holdfast.mutex(scene.name).run(() => "worked")).toBe("worked");
  expect((await sent()).filter(([, sha1]) => sha1 === serverMemory.sha1)).toEqual([]);
  stop();
});

test("an eviction policy without a memory limit is accepted", async () => {
  await scene.server.command("CONFIG", "SET", "maxmemory-policy", "allkeys-lru");
  const holdfast = await scene.client(ioredis);
  expect(await holdfast.mutex(scene.name).run(() => "worked")).toBe("worked");
});

test("the first acquire and the eviction check are sent together, in one round trip", async () => {
  const { name, server } = scene;
  const redis = new Redis({ port: server.port });
  await redis.ping();
  const written: string[] = [];
  const write = redis.stream.write.bind(redis.stream);
  redis.stream.write = (...args: unknown[]) => {
    written.push(String(args[0]));
    return write(...(args as Parameters<typeof write>));
  };
  // The failover check runs before the first acquire and has its own tests.
  const holdfast = createHoldfast({ redis, failoverGrace: "off" });
  const acquiring = holdfast.mutex(name).acquire();
  for (const { sha1 } of [serverMemory, mutexAcquire]) {
    expect(written.filter((text) => text.includes(sha1))).toHaveLength(1);
  }
  await acquiring;
  written.length = 0;
  await holdfast.mutex(`${name}:2`).acquire();
  expect(written.filter((text) => text.includes(serverMemory.sha1))).toEqual([]);
  await holdfast.close();
  redis.disconnect();
});

test("after a reconnect, which may lead to another server, Holdfast checks the eviction policy again", async () => {
  const { name, server } = scene;
  const redis = new Redis({ port: server.port, retryStrategy: () => 20 });
  redis.on("error", () => {});
  const holdfast = createHoldfast({ redis });
  try {
    await holdfast.mutex(name).run(() => {});
    await evicting("volatile-ttl");
    expect(await holdfast.mutex(name).run(() => "not asked")).toBe("not asked");
    const isBack = once(redis, "ready");
    await server.command("CLIENT", "KILL", "TYPE", "normal");
    await isBack;
    await expect(holdfast.mutex(name).acquire()).rejects.toMatchObject({ policy: "volatile-ttl" });
  } finally {
    await holdfast.close();
    redis.disconnect();
  }
});

test("if the server hides its policy, Holdfast warns once and grants locks", async () => {
  const { name, server } = scene;
  await server.command("ACL", "SETUSER", "locks", "on", ">secret", "~*", "&*", "+@all", "-info");
  const redis = new Redis({ port: server.port, username: "locks", password: "secret", enableReadyCheck: false });
  const holdfast = createHoldfast({ redis });
  try {
    for (let i = 0; i < 3; i += 1) expect(await holdfast.mutex(name).run(() => "worked")).toBe("worked");
    await new Promise(setImmediate);
    const ours = warnings.filter(({ code }) => code === "HOLDFAST_EVICTION_UNKNOWN");
    expect(ours).toHaveLength(1);
    expect(`${ours[0]?.message} ${ours[0]?.detail}`).toMatch(/INFO.*maxmemory-policy.*allowEviction/s);
  } finally {
    await holdfast.close();
    redis.disconnect();
  }
});

test.each([ioredis, nodeRedis, glide])(
  "on $name, closing the client during the first acquire causes no warning",
  async (library) => {
    const { options, disconnect } = await library.connect(scene.server.port);
    const holdfast = createHoldfast(options);
    const acquiring = holdfast.mutex(scene.name).acquire();
    disconnect();
    await expect(acquiring).rejects.toMatchObject({ code: "ERR_LOCK_STORE" });
    await holdfast.close();
    await new Promise(setImmediate);
    expect(warnings).toEqual([]);
  },
);

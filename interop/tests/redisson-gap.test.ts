/**
 * A release between a refused attempt of a Java thread and its sleep. The test delays the reply to the second attempt
 * until the message was delivered. Redisson remembers the message `0` for the next thread that goes to sleep. The
 * message `1`, which it publishes when a writer leaves, wakes only threads that already sleep, so between two Java
 * services the waiter misses it.
 */

import { redisson } from "@holdfast/interop/redisson";
import { createHoldfast, type Holdfast } from "holdfast";
import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type RedisServer, startRedis } from "../../tests/support/redis-server.js";
import { startProxy, type TcpProxy } from "../../tests/support/tcp-proxy.js";
import { type Peer, REDISSONS, startRedisson } from "./peer.js";
import { connect, type JavaClient } from "./redisson-peer.js";
import { freshThread, javaSide, LONG_LEASE_MS, PATIENCE_MS, type SideHold } from "./sides.js";

/** The duration of a wait that must fail: longer than a waiter that is woken needs on a busy machine. */
const VAIN_WAIT_MS = 5_000;

let count = 0;

describe.each(REDISSONS)("Redisson %s", (version) => {
  let server: RedisServer;
  let redis: Redis;
  let holdfast: Holdfast;
  let java: Peer;
  let holder: JavaClient;
  let waiter: JavaClient;
  let proxy: TcpProxy;

  beforeAll(async () => {
    java = startRedisson(version);
    server = await startRedis();
    redis = new Redis(server.url);
    holdfast = createHoldfast({ redis });
    proxy = await startProxy(server.port);
    holder = await connect(java, { port: server.port });
    waiter = await connect(java, { port: proxy.port, timeoutMs: 60_000 });
  });
  afterAll(async () => {
    await holdfast.close();
    redis.disconnect();
    await java.stop();
    await proxy.close();
    await server.stop();
  });

  type Type = "lock" | "read" | "write";

  /**
   * Makes a Java thread wait, releases the lock before the thread sleeps, and returns whether the thread then
   * acquires it.
   */
  async function wokenBy(name: string, type: Type, waitMs: number, release: () => Promise<unknown>): Promise<boolean> {
    const thread = freshThread(waiter);
    let isListening = false;
    // The thread tries, subscribes, and tries again.
    const second = proxy.holdReply(([word = ""]) => {
      if (/^s?subscribe$/i.test(word)) isListening = true;
      return isListening && /^evalsha$|^eval$/i.test(word);
    });
    const isHeld = thread.call("tryLock", { type, name, waitMs, leaseMs: LONG_LEASE_MS });
    await second.reached;
    const messages = proxy.counts.messages;
    await release();
    await expect.poll(() => proxy.counts.messages).toBeGreaterThan(messages);
    second.release();
    if (!(await isHeld)) return false;
    await thread.call("unlock", { type, name });
    return true;
  }

  async function heldByJava(name: string, type: Type): Promise<SideHold> {
    const hold = await javaSide(holder, () => ({ type, name })).tryHold(name, LONG_LEASE_MS);
    if (hold === null) throw new Error("it was not free");
    return hold;
  }

  const fresh = (): string => {
    count += 1;
    return `between:${count}`;
  };

  test.each([
    ["reader", "read"],
    ["writer", "write"],
  ] as const)("wakes a %s of Java when a writer of Node leaves", async (_, type) => {
    const name = fresh();
    const lease = await redisson(holdfast).readWriteLock(name).write.acquire({ leaseMs: LONG_LEASE_MS });
    expect(await wokenBy(name, type, PATIENCE_MS, () => lease.release())).toBe(true);
  });

  test("wakes a reader of Java when a writer of Node is downgraded to a reader", async () => {
    const name = fresh();
    const here = redisson(holdfast, { watchdogMs: LONG_LEASE_MS });
    const lease = await here.readWriteLock(name).write.acquire({ leaseMs: LONG_LEASE_MS });
    expect(await wokenBy(name, "read", PATIENCE_MS, () => lease.downgrade())).toBe(true);
  });

  test("wakes a writer of Java when Node ends the hold of another writer of Java", async () => {
    const name = fresh();
    await heldByJava(name, "write");
    const { write } = redisson(holdfast).readWriteLock(name);
    const [owner = ""] = (await write.inspect()).holders.map((each) => each.owner);
    expect(await wokenBy(name, "write", PATIENCE_MS, () => write.forceRelease({ owner }))).toBe(true);
  });

  test("does not reach a writer of Java when another writer of Java releases; that of an RLock does", async () => {
    const lock = fresh();
    const held = await heldByJava(lock, "lock");
    expect(await wokenBy(lock, "lock", PATIENCE_MS, () => held.release())).toBe(true);
    // The message may be delivered in time but read after the reply, and then the thread notices it. This rarely
    // happens in every round.
    for (let round = 0; round < 10; round += 1) {
      const name = fresh();
      const written = await heldByJava(name, "write");
      if (await wokenBy(name, "write", VAIN_WAIT_MS, () => written.release())) continue;
      expect(await redis.exists(name), "it was free all the time").toBe(0);
      return;
    }
    expect.unreachable("Redisson has woken it each time");
  });
});

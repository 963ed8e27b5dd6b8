/**
 * Defects of the Java UUID lock of article E, each shown with the real program, and that Holdfast's lock does not
 * have them.
 */

import { javaUuid, type TimestampLock, timestampLock } from "@holdfast/interop/timestamp";
import { createHoldfast, type Holdfast, LeaseLostError } from "holdfast";
import { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { until } from "../../packages/holdfast/src/testing/delays.js";
import { type RedisServer, startRedis } from "../../tests/support/redis-server.js";
import { startProxy, type TcpProxy } from "../../tests/support/tcp-proxy.js";
import { CONTENTION_MS, type Contender, contendHere, tell } from "./contention.js";
import { type Peer, startJedis } from "./peer.js";
import { inVain } from "./sides.js";

const PATIENCE_MS = 40_000;
/** Longer than any test takes. */
const LONG_LEASE_MS = 120_000;
/** Renewed three times per lease, like the default of their lock. */
const LEASE_MS = 3_000;
const RENEW_MS = 1_000;

let redis: RedisServer;
let client: Redis;
let holdfast: Holdfast;
let java: Peer;
let count = 0;
const closers: (() => unknown)[] = [];

beforeAll(async () => {
  java = startJedis();
  redis = await startRedis();
  client = new Redis(redis.url);
  holdfast = createHoldfast({ redis: client });
});
afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});
afterAll(async () => {
  await holdfast.close();
  client.disconnect();
  await java.stop();
  await redis.stop();
});

/** A lock object of the article, as used by one thread. */
interface Theirs {
  tryLock(): Promise<boolean>;
  unlock(): Promise<boolean>;
  renewals(): Promise<number>;
  sleep(forMs: number): Promise<boolean>;
  /** Lets the thread sleep for long. Resolves when it sleeps; `end` settles when it wakes up. */
  asleep(): Promise<{ readonly end: Promise<boolean> }>;
  /** Acquires the lock in a thread that then ends immediately. */
  lockAndEnd(): Promise<boolean>;
}

/** A key with both the article's lock and Holdfast's lock for it. */
async function shared(settings: { port?: number; peer?: Peer; leaseMs?: number; renewMs?: number } = {}): Promise<{
  readonly name: string;
  readonly theirs: Theirs;
  readonly ours: TimestampLock;
}> {
  count += 1;
  const name = `source:${count}`;
  return { name, theirs: await objectOf(name, settings), ours: timestampLock(holdfast, name, javaUuid) };
}

async function objectOf(
  name: string,
  { port = redis.port, peer = java, ...times }: { port?: number; peer?: Peer; leaseMs?: number; renewMs?: number } = {},
  ofThread?: string,
): Promise<Theirs> {
  count += 1;
  const place = { lock: `uuid lock ${count}`, thread: ofThread ?? `thread ${count}` };
  await peer.call("uuid.create", { ...place, name, port, leaseMs: LEASE_MS, renewMs: RENEW_MS, ...times });
  return {
    tryLock: () => peer.call("uuid.tryLock", place),
    unlock: () => peer.call("uuid.unlock", place),
    renewals: () => peer.call<number>("uuid.renewals", { ...place, thread: `${place.thread}, aside` }),
    sleep: (forMs) => peer.call("uuid.sleep", { ...place, forMs }),
    async asleep() {
      const end = peer.call<boolean>("uuid.sleep", { ...place, forMs: PATIENCE_MS });
      end.catch(() => {});
      // An interrupt that arrives before would be meant for no request.
      await until(async () => (await peer.call<string>("state", place)) === "TIMED_WAITING", "the thread to sleep");
      return { end };
    },
    lockAndEnd: () => peer.call("uuid.lockAndEnd", place),
  };
}

async function proxied(): Promise<TcpProxy> {
  const proxy = await startProxy(redis.port);
  closers.push(() => proxy.close());
  return proxy;
}

test("each side excludes the other while it renews, and its release lets the other in", async () => {
  const { name, theirs, ours } = await shared();
  expect(await theirs.tryLock()).toBe(true);
  await expect(ours.acquire({ waitMs: LEASE_MS + 1_000 })).rejects.toMatchObject({
    holder: { owner: await client.get(name) },
  });
  const waiting = ours.acquire({ waitMs: PATIENCE_MS, leaseMs: LEASE_MS });
  expect(await theirs.unlock()).toBe(true);
  const lease = await waiting;
  const overAtMs = performance.now() + LEASE_MS + 1_000;
  while (performance.now() < overAtMs) expect(await theirs.tryLock()).toBe(false);
  expect(await lease.release()).toBe("released");
  expect(await theirs.tryLock()).toBe(true);
  await theirs.unlock();
});

test("each side gets the lock of a dead holder of the other when its lease is over, not before", async () => {
  const dying = startJedis();
  const { ours } = await shared();
  const dead = await shared({ peer: dying });
  expect(await dead.theirs.tryLock()).toBe(true);
  await dying.kill();
  expect(await dead.ours.tryAcquire()).toBeNull();
  expect(await (await dead.ours.acquire({ waitMs: PATIENCE_MS })).release()).toBe("released");

  const mortal = new Redis(redis.url);
  const gone = createHoldfast({ redis: mortal });
  await timestampLock(gone, ours.name, javaUuid).acquire({ leaseMs: LEASE_MS });
  mortal.disconnect();
  const heir = await objectOf(ours.name);
  expect(await heir.tryLock()).toBe(false);
  await until(() => heir.tryLock(), "the heir has it");
  await heir.unlock();
  await gone.close();
});

test("a forced release ends a lock of theirs by its value; its thread is interrupted, and does not restore it", async () => {
  const { name, theirs, ours } = await shared();
  expect(await theirs.tryLock()).toBe(true);
  const { end: working } = await theirs.asleep();
  expect(await ours.forceRelease({ owner: "somebody else" })).toBe(false);
  expect(await ours.forceRelease({ owner: (await client.get(name)) as string })).toBe(true);
  await expect(working).rejects.toMatchObject({ kind: "InterruptedException" });
  expect(await client.exists(name)).toBe(0);
});

test("a counter that only the lock protects loses no update, with both sides at random", {
  timeout: CONTENTION_MS + 60_000,
}, async () => {
  const { name, ours } = await shared();
  const counter = `counter of ${name}`;
  await client.set(counter, 0);
  const there = async (): Promise<Contender> => {
    count += 1;
    const place = { lock: `uuid lock ${count}`, thread: `thread ${count}` };
    await java.call("uuid.create", { ...place, name, port: redis.port });
    return java.call("uuid.contend", { ...place, port: redis.port, counter, forMs: CONTENTION_MS });
  };
  const here = (): Promise<Contender> => contendHere(client, counter, () => ours.acquire({ waitMs: PATIENCE_MS }));
  const all = await Promise.all([there(), there(), here(), here()]);
  const report = JSON.stringify(all);
  const total = all.reduce((sum, { rounds }) => sum + rounds, 0);
  const counted = Number(await client.get(counter));
  tell("article E in Java", `${total} rounds, ${total - counted} lost: ${report}`);
  expect(counted, report).toBe(total);
  for (const { rounds, longestWaitMs } of all) {
    expect(rounds, report).toBeGreaterThan(0);
    expect(longestWaitMs, report).toBeLessThanOrEqual(PATIENCE_MS);
  }
});

test("E1: a nested acquire succeeds by a local count although the lock is lost; Holdfast checks the clock and the server", async () => {
  const { name, theirs, ours } = await shared({ renewMs: LONG_LEASE_MS });
  expect(await theirs.tryLock()).toBe(true);
  await client.del(name);
  const lease = await ours.acquire({ leaseMs: LONG_LEASE_MS });
  expect(await theirs.tryLock(), "beside ours").toBe(true);
  // Holdfast's lock is not reentrant, so no caller acquires it a second time.
  expect(await ours.tryAcquire()).toBeNull();
  await client.del(name);
  await expect(lease.extend(LONG_LEASE_MS)).rejects.toBeInstanceOf(LeaseLostError);
  expect(() => lease.assertHeld()).toThrow(LeaseLostError);
});

test("E2: a renewal that throws is the last one, and nobody is notified; Holdfast retries, and reports a loss in time", async () => {
  const proxy = await proxied();
  const { name, theirs } = await shared({ port: proxy.port });
  expect(await theirs.tryLock()).toBe(true);
  await until(async () => (await theirs.renewals()) >= 1, "a renewal");
  const struck = proxy.cutBeforeRequest(/PEXPIRE/);
  await struck;
  await until(async () => (await client.exists(name)) === 0, "its lease to end");
  const renewals = await theirs.renewals();
  expect(await theirs.sleep(10), "it was not interrupted").toBe(true);
  expect(await theirs.renewals(), "nor renewed again").toBe(renewals);
  expect(await theirs.tryLock(), "and it believes that it holds").toBe(true);

  const cutHere = new Redis({ port: proxy.port });
  cutHere.on("error", () => {});
  const here = createHoldfast({ redis: cutHere, commandTimeoutMs: 500 });
  const lease = await timestampLock(here, `${name}:ours`, javaUuid).acquire({ leaseMs: LEASE_MS });
  await proxy.cutBeforeRequest(/EVALSHA/i);
  const overAtMs = performance.now() + LEASE_MS + 500;
  await until(() => performance.now() > overAtMs, "its first lease to be over");
  expect(lease.signal.aborted).toBe(false);
  proxy.refuse(true);
  proxy.cutAll();
  const leftMs = lease.validForMs();
  await until(() => lease.signal.aborted, "the loss to be told");
  expect(leftMs).toBeGreaterThan(0);
  expect(lease.validForMs()).toBe(0);
  await here.close();
  cutHere.disconnect();
});

test("E3: after an unlock that throws, the renewal continues and the lock never ends; Holdfast ends its renewal first", async () => {
  const proxy = await proxied();
  const { name, theirs, ours } = await shared({ port: proxy.port });
  expect(await theirs.tryLock()).toBe(true);
  const struck = proxy.cutBeforeRequest(/DEL/);
  await expect(theirs.unlock()).rejects.toThrow();
  await struck;
  await expect(ours.acquire({ waitMs: LEASE_MS + 1_000 }), "renewed by nobody's wish").rejects.toThrow();
  await theirs.unlock();

  const cutHere = new Redis({ port: proxy.port });
  cutHere.on("error", () => {});
  const here = createHoldfast({ redis: cutHere, commandTimeoutMs: 300 });
  const lease = await timestampLock(here, name, javaUuid).acquire({ leaseMs: LEASE_MS, waitMs: PATIENCE_MS });
  proxy.refuse(true);
  proxy.cutAll();
  await lease.release().catch(() => {});
  expect(await (await ours.acquire({ waitMs: PATIENCE_MS })).release(), "over by itself").toBe("released");
  await here.close();
  cutHere.disconnect();
});

test("E4: the lock of a thread that ends without unlocking is renewed as long as its JVM lives; a lease of Holdfast ends with `run`", async () => {
  const forgetful = startJedis();
  closers.push(() => forgetful.kill());
  const { theirs, ours } = await shared({ peer: forgetful });
  expect(await theirs.lockAndEnd()).toBe(true);
  await expect(ours.acquire({ waitMs: 2 * LEASE_MS })).rejects.toThrow();
  await forgetful.kill();
  const failing = ours.run(
    () => {
      throw new Error("the work failed");
    },
    { waitMs: PATIENCE_MS },
  );
  await expect(failing).rejects.toThrow("the work failed");
  expect(await client.exists(ours.key)).toBe(0);
});

test("E5: a renewal just after the delete interrupts a thread that has released; Holdfast signals nothing after a release", async () => {
  const proxy = await proxied();
  const { theirs } = await shared({ port: proxy.port });
  expect(await theirs.tryLock()).toBe(true);
  // Delays the renewal while another connection deletes the lock.
  const late = proxy.hold(/PEXPIRE/);
  await late.reached;
  expect(await theirs.unlock()).toBe(true);
  const { end: next } = await theirs.asleep();
  late.release();
  await expect(next).rejects.toMatchObject({ kind: "InterruptedException" });

  const cutHere = new Redis({ port: proxy.port });
  cutHere.on("error", () => {});
  const here = createHoldfast({ redis: cutHere });
  count += 1;
  const lease = await timestampLock(here, `source:${count}`, javaUuid).acquire({ leaseMs: LEASE_MS });
  const held = proxy.hold(/EVALSHA/i);
  await held.reached;
  const released = lease.release();
  held.release();
  expect(await released).toBe("released");
  const { reason } = lease.signal;
  expect(reason instanceof LeaseLostError ? reason.reason : "none").not.toMatch(/server-lost|expired/);
  await here.close();
  cutHere.disconnect();
});

test("E6: two objects of one name do not know each other, even in one thread; with Holdfast each lease is separate", async () => {
  const { name, theirs, ours } = await shared();
  const again = await objectOf(name, {}, "one thread");
  const first = await objectOf(name, {}, "one thread");
  expect(await first.tryLock()).toBe(true);
  expect(await first.tryLock(), "the same object").toBe(true);
  expect(await again.tryLock(), "another object, same thread").toBe(false);
  expect(await theirs.tryLock()).toBe(false);
  await first.unlock();
  await first.unlock();
  const lease = await ours.acquire();
  await expect(inVain(() => ours.acquire({ waitMs: 20 }))).rejects.toMatchObject({ isOwn: true });
  expect(await lease.release()).toBe("released");
});

test("E7: an unlock without a lock reports nothing; a late release of Holdfast reports it", async () => {
  const { name, theirs, ours } = await shared();
  expect(await theirs.unlock()).toBe(true);
  const lease = await ours.acquire();
  await client.del(name);
  await expect(lease.release()).rejects.toBeInstanceOf(LeaseLostError);
});

test("E8: a master that crashes before it has replicated leaves two holders; with `replicas` Holdfast is not granted without replication", async () => {
  const replica = await startRedis();
  closers.push(() => replica.stop());
  await replica.command("REPLICAOF", "127.0.0.1", String(redis.port));
  await client.config("SET", "repl-diskless-sync-delay", "0");
  const follows = async (): Promise<boolean> =>
    String(await replica.command("INFO", "replication")).includes("master_link_status:up");
  await until(follows, "the replica to follow");
  // Later writes no longer reach the replica; then it becomes the primary.
  await replica.command("REPLICAOF", "NO", "ONE");
  const { name, theirs } = await shared();
  expect(await theirs.tryLock()).toBe(true);
  const second = await objectOf(name, { port: replica.port });
  expect(await second.tryLock(), "two hold it").toBe(true);
  await Promise.all([theirs.unlock(), second.unlock()]);

  const cautious = new Redis(redis.url);
  const here = createHoldfast({ redis: cautious, replicas: { atLeast: 1, timeoutMs: 200 }, commandTimeoutMs: 1_000 });
  await expect(timestampLock(here, name, javaUuid).acquire({ waitMs: 300 })).rejects.toThrow("replicas acknowledged");
  await here.close();
  cautious.disconnect();
});

test("E9, F1: a JVM that freezes for longer than a lease continues as if it held the lock; a resource that checks tokens refuses it", async () => {
  const paused = startJedis();
  closers.push(() => paused.kill());
  const { theirs, ours } = await shared({ peer: paused });
  expect(await theirs.tryLock()).toBe(true);
  paused.freeze();
  const lease = await ours.acquire({ waitMs: PATIENCE_MS, leaseMs: LONG_LEASE_MS });
  paused.resume();
  expect(await theirs.tryLock(), "beside ours, and unaware").toBe(true);
  lease.assertHeld();
  // Holdfast's tokens protect the resource: a lease with an older token is refused. Their lock has no tokens.
  let seen = 0;
  const write = (token: number): boolean => {
    if (token < seen) return false;
    seen = token;
    return true;
  };
  expect(await lease.release()).toBe("released");
  const next = await ours.acquire({ waitMs: PATIENCE_MS });
  expect([write(next.token), write(lease.token)]).toEqual([true, false]);
  expect(await next.release()).toBe("released");
});

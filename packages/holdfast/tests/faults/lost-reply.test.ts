/**
 * Requests that the server runs but whose reply is lost, on libraries that resend requests and on those that do not.
 */
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { TcpProxy } from "../../../../tests/support/tcp-proxy.js";
import type { Script } from "../../src/core/store.js";
import { mutexAcquire, mutexExtend, mutexLeave, mutexRelease } from "../../src/generated/scripts.js";
import { type Holdfast, StoreError } from "../../src/index.js";
import { LONG_MS, SOON_MS, until } from "../../src/testing/delays.js";
import { glide, ioredis, nodeRedis, useFaultScene } from "./scene.js";

const scene = useFaultScene();

/** Matches calls of that script for the lock of this test; the warm-up uses another name. */
function callsOf(script: Script): (words: readonly string[]) => boolean {
  const sha1 = scene.hashOf(script);
  return (words) => words[0]?.toUpperCase() === "EVALSHA" && words[1] === sha1 && words.includes(scene.keys.lock);
}

describe.each([ioredis, nodeRedis, glide])("$name", (library) => {
  let proxy: TcpProxy;
  let holdfast: Holdfast;
  let rival: Holdfast;

  beforeEach(async () => {
    proxy = await scene.proxy();
    holdfast = await scene.client(library, {}, proxy.port);
    rival = await scene.client(ioredis);
    // Loads the scripts, so that each call below is one request.
    const warm = `warm:${scene.name}`;
    const lease = await holdfast.mutex(warm).acquire();
    // Any error will do: a server that stalls at this moment cannot say who holds the lock.
    await expect(holdfast.mutex(warm).acquire({ waitMs: 1 })).rejects.toThrow();
    const queue = `hf:mutex:{${warm}}:queue`;
    await until(async () => (await scene.server.command("EXISTS", queue)) === 0, "the queue to be empty");
    await lease.extend(LONG_MS);
    await lease.release();
  });
  afterEach(() => {
    expect(proxy.counts.lostReplies, "the fault struck").toBe(1);
  });

  test("an acquire whose reply is lost makes one grant with one token", async () => {
    const { name, server, keys } = scene;
    const struck = proxy.cutBeforeReply(callsOf(mutexAcquire));
    const acquiring = holdfast.mutex(name).acquire({ leaseMs: LONG_MS, waitMs: LONG_MS });
    await struck;
    const granted = { owner: await scene.holder(), token: await scene.token() };
    const lease = await acquiring;
    expect({ owner: lease.owner, token: lease.token }).toEqual(granted);
    expect(Number(await server.command("PTTL", keys.lock))).toBeGreaterThan(lease.validForMs());
    expect(await lease.release()).toBe("released");
    expect(await scene.holder()).toBeNull();
    expect(await server.command("EXISTS", keys.queue)).toBe(0);
  });

  test("a waiter whose reply is lost is in the queue once and is granted once", async () => {
    const { name, server, keys } = scene;
    const lease = await rival.mutex(name).acquire({ leaseMs: LONG_MS });
    const struck = proxy.cutBeforeReply((words) => callsOf(mutexAcquire)(words) && words.at(-2) === "1");
    const waiting = holdfast.mutex(name).acquire({ waitMs: LONG_MS });
    await struck;
    expect(await server.command("ZCARD", keys.queue)).toBe(1);
    const behind = rival.mutex(name).acquire({ waitMs: LONG_MS });
    await scene.queued(2);
    await lease.release();
    const next = await waiting;
    expect(await next.release()).toBe("released");
    const last = await behind;
    expect(last.token).toBeGreaterThan(next.token);
    await last.release();
    expect(await scene.holder()).toBeNull();
  });

  test('a release whose reply is lost still reports "released"', async () => {
    const { name } = scene;
    const lease = await holdfast.mutex(name).acquire({ leaseMs: LONG_MS });
    const struck = proxy.cutBeforeReply(callsOf(mutexRelease));
    const releasing = lease.release();
    await struck;
    expect(await scene.holder()).toBeNull();
    expect(await releasing).toBe("released");
  });

  test('a release whose reply is lost reports "released" and does not release the next holder', async () => {
    const { name } = scene;
    const lease = await holdfast.mutex(name).acquire({ leaseMs: LONG_MS });
    const waiting = rival.mutex(name).acquire({ waitMs: LONG_MS });
    await scene.queued(1);
    const struck = proxy.cutBeforeReply(callsOf(mutexRelease));
    const releasing = lease.release();
    await struck;
    const next = await waiting;
    expect(await releasing).toBe("released");
    expect(await scene.holder()).toBe(next.owner);
    next.assertHeld();
    expect(await next.release()).toBe("released");
  });

  test("a lease survives a renewal whose reply is lost", async () => {
    const { name } = scene;
    const lease = await holdfast.mutex(name).acquire({ leaseMs: SOON_MS });
    const { signal, token } = lease;
    await proxy.cutBeforeReply(callsOf(mutexExtend));
    const leftMs = lease.validForMs();
    await until(() => lease.validForMs() > leftMs, "a renewal after that");
    expect(signal.aborted).toBe(false);
    expect(await scene.token()).toBe(token);
    expect(await rival.mutex(name).tryAcquire()).toBeNull();
    expect(await lease.release()).toBe("released");
  });

  test("an aborted wait leaves the queue even if the reply to its leave request is lost", async () => {
    const { name, server, keys } = scene;
    const lease = await rival.mutex(name).acquire({ leaseMs: LONG_MS });
    const abort = new AbortController();
    const waiting = holdfast.mutex(name).acquire({ waitMs: LONG_MS, signal: abort.signal });
    await scene.queued(1);
    const struck = proxy.cutBeforeReply(callsOf(mutexLeave));
    const reason = new Error("enough");
    abort.abort(reason);
    await expect(waiting).rejects.toBe(reason);
    await struck;
    // The lost reply may have been NOSCRIPT.
    await until(async () => (await server.command("EXISTS", keys.queue)) === 0, "the queue to be empty");
    await lease.release();
    expect(await scene.holder()).toBeNull();
    await (await holdfast.mutex(name).acquire({ waitMs: SOON_MS })).release();
  });

  test("a tryAcquire whose reply is lost returns a lease, or fails and is undone", async () => {
    const { name } = scene;
    const struck = proxy.cutBeforeReply(callsOf(mutexAcquire));
    const attempt = holdfast.mutex(name).tryAcquire({ leaseMs: LONG_MS });
    const outcome = await attempt.catch((error: unknown) => error);
    await struck;
    if (outcome instanceof Error) {
      expect(outcome).toBeInstanceOf(StoreError);
      expect(outcome).toMatchObject({ mayHaveRun: true, lockName: name });
    } else {
      expect(await (await attempt)?.release()).toBe("released");
    }
    // Long before the lease would expire.
    const next = await rival.mutex(name).acquire({ waitMs: SOON_MS });
    await next.release();
  });
});

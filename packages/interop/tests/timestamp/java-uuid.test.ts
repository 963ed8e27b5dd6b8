/** The Java lock with a UUID, row by row: its own defects, and its effects on Holdfast and vice versa. */
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { createHoldfast, LeaseLostError, type RenewEvent } from "holdfast";
import { Redis } from "ioredis";
import { expect, test, vi } from "vitest";
import { startProxy, type TcpProxy } from "../../../../tests/support/tcp-proxy.js";
import { withLeaseInTime } from "../../../holdfast/src/testing/delays.js";
import { javaUuid, type TimestampLock, timestampLock } from "../../src/timestamp/index.js";
import { COMMON } from "./common-rows.js";
import { javaUuidPeer, UuidPeer } from "./peers.js";
import { eventually } from "./rows.js";
import { type Row, useScene } from "./scene.js";

const scene = useScene(javaUuid, javaUuidPeer);
const peer = (): UuidPeer => scene.peer() as UuidPeer;

/** Runs `play` with a Holdfast lock and a Java lock behind one proxy. */
async function behindProxy(
  play: (proxy: TcpProxy, ours: TimestampLock, theirs: UuidPeer) => Promise<void>,
): Promise<void> {
  const proxy = await startProxy(scene.server.port);
  const options = { port: proxy.port, retryStrategy: () => 10, maxRetriesPerRequest: 0 };
  const [ours, theirs] = [new Redis(options), new Redis(options)];
  for (const redis of [ours, theirs]) redis.on("error", () => {});
  const holdfast = createHoldfast({ redis: ours, commandTimeoutMs: 200 });
  try {
    await play(
      proxy,
      timestampLock(holdfast, scene.name, javaUuid, { leaseMs: 2_000 }),
      new UuidPeer(theirs, scene.key),
    );
  } finally {
    proxy.refuse(false);
    await holdfast.close();
    ours.disconnect();
    theirs.disconnect();
    await proxy.close();
  }
}

/** The rows of interop/coverage.md, in its words. */
export const ROWS: readonly Row[] = [
  ...COMMON,
  {
    id: "value",
    title: "the value is a UUID, new for each acquire, with the expiry of the lease",
    async play() {
      const values = new Set<string | null>();
      for (let i = 0; i < 3; i += 1) {
        const lease = await scene.lock().acquire();
        values.add(await scene.redis.get(scene.key));
        expect(await scene.redis.pttl(scene.key)).toBeGreaterThan(javaUuid.leaseMs - 5_000);
        expect(await scene.redis.pttl(scene.key)).toBeLessThanOrEqual(javaUuid.leaseMs);
        await lease.release();
      }
      expect(values.size).toBe(3);
      for (const value of values)
        expect(value).toMatch(/^[\da-f]{8}-[\da-f]{4}-4[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/);
    },
  },
  {
    id: "E1",
    title: "the foreign count lets a caller re-enter a lost lock; a Holdfast lease checks its clock each time",
    async play() {
      const theirs = peer();
      await theirs.tryLock();
      await scene.redis.del(scene.key);
      expect(await theirs.tryLock()).toBe(true);
      await scene.redis.del(scene.key);
      const lease = await scene.lock().acquire({ leaseMs: 100, renew: false });
      // Blocks the process for longer than its lease, so that no timer runs.
      const endAtMs = performance.now() + 150;
      while (performance.now() < endAtMs);
      expect(() => lease.assertHeld()).toThrow(LeaseLostError);
      expect(lease.signal.aborted).toBe(true);
    },
  },
  {
    id: "E2",
    title: "one renewal that throws ends the foreign schedule; Holdfast continues to renew until the lease is over",
    async play() {
      await behindProxy(async (proxy, _lock, theirs) => {
        await theirs.tryLock();
        proxy.refuse(true);
        proxy.cutAll();
        await theirs.renew();
        expect([theirs.isRenewing, theirs.isInterrupted]).toEqual([false, false]);
      });
      await withLeaseInTime((leaseMs) =>
        behindProxy(async (proxy, lock) => {
          await scene.redis.flushall();
          const renewals: RenewEvent[] = [];
          const listen = (message: unknown): void => void renewals.push(message as RenewEvent);
          subscribe("holdfast:renew", listen);
          const lease = await lock.acquire({ leaseMs });
          const value = await scene.redis.get(scene.key);
          proxy.refuse(true);
          proxy.cutAll();
          await vi.waitFor(() => expect(renewals.at(-1)?.error).toBeDefined(), eventually);
          proxy.refuse(false);
          await vi.waitFor(() => expect(renewals.at(-1)?.error).toBeUndefined(), eventually);
          unsubscribe("holdfast:renew", listen);
          expect(lease.signal.aborted).toBe(false);
          expect(await scene.redis.get(scene.key)).toBe(value);
          expect(await lease.release()).toBe("released");
        }),
      );
    },
  },
  {
    id: "E3",
    title: "a foreign lock whose release fails is renewed forever; Holdfast sends no renewal after a release",
    async play() {
      await behindProxy(async (proxy, lock, theirs) => {
        await theirs.tryLock();
        proxy.refuse(true);
        proxy.cutAll();
        await expect(theirs.unlock()).rejects.toThrow();
        expect(theirs.isRenewing).toBe(true);
        proxy.refuse(false);
        await scene.redis.del(scene.key);

        const lease = await lock.acquire();
        proxy.refuse(true);
        proxy.cutAll();
        await expect(lease.release()).rejects.toMatchObject({ code: "ERR_LOCK_STORE" });
        expect(lease.validForMs()).toBe(0);
        proxy.refuse(false);
        // The lock is released when the server is reachable again, or expires. No renewal keeps it alive.
        await vi.waitFor(async () => expect(await scene.redis.exists(scene.key)).toBe(0), eventually);
      });
    },
  },
  {
    id: "E4",
    title:
      "the foreign lock of a thread that ended without a release is renewed until its process exits; `run` always releases",
    async play() {
      await expect(
        scene.lock().run(() => {
          throw new Error("the work failed");
        }),
      ).rejects.toThrow("the work failed");
      expect(await scene.redis.exists(scene.key)).toBe(0);
    },
  },
  {
    id: "E5",
    title:
      "a foreign renewal just after the release interrupts a thread that holds nothing; no Holdfast signal aborts after a release",
    async play() {
      const theirs = peer();
      await theirs.tryLock();
      const { uuid } = theirs;
      await scene.redis.del(scene.key);
      await theirs.renew(uuid);
      expect(theirs.isInterrupted).toBe(true);
      const lease = await scene.lock().acquire();
      const { signal } = lease;
      expect(await lease.release()).toBe("released");
      expect(await scene.lock().tryAcquire()).not.toBeNull();
      expect([signal.aborted, lease.validForMs()]).toEqual([false, 0]);
    },
  },
  {
    id: "E6",
    title:
      "two foreign lock objects with one name are two owners; the Holdfast error says that the caller waited for its own process",
    async play() {
      const [one, other] = [peer(), peer()];
      expect(await one.tryLock()).toBe(true);
      expect(await one.tryLock()).toBe(true);
      expect(await other.tryLock()).toBe(false);
      await scene.redis.del(scene.key);
      await scene.lock().acquire();
      await expect(scene.lock().acquire({ waitMs: 10 })).rejects.toMatchObject({ isOwn: true });
    },
  },
  {
    id: "E7",
    title: "a foreign release without a lock is silent; the release of a lost Holdfast lease reports the loss",
    async play() {
      await peer().unlock();
      const lease = await scene.lock().acquire();
      await scene.redis.set(scene.key, "somebody");
      await expect(lease.release()).rejects.toBeInstanceOf(LeaseLostError);
      expect(await scene.redis.get(scene.key)).toBe("somebody");
    },
  },
  {
    id: "E9, F1",
    title: "a resource that has seen a newer token refuses a holder that was paused",
    async play() {
      let seen = 0;
      const accept = (token: number): boolean => {
        if (token < seen) return false;
        seen = token;
        return true;
      };
      const paused = await scene.lock().acquire({ renew: false });
      // Simulates the end of the lease on the server: both keys are gone.
      await scene.redis.del(scene.key, `{${scene.key}}:holdfast:owner`);
      const next = await scene.lock({}, "second").acquire();
      expect(accept(next.token)).toBe(true);
      expect(accept(paused.token)).toBe(false);
      await next.release();
    },
  },
];

test.each(ROWS.map((row) => [row.id, row.title, row] as const))(
  "%s: %s",
  { timeout: eventually.timeout * 8 },
  (_id, _title, row) => row.play(scene),
);

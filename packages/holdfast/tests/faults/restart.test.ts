/** A server that restarts with empty memory: the effect on holders, waiters and new callers. */
import { once } from "node:events";
import { describe, expect, test } from "vitest";
import { BRIEF_LEASE_MS, LONG_MS, until } from "../../src/testing/delays.js";
import { glide, ioredis, nodeRedis, useFaultScene } from "./scene.js";

const scene = useFaultScene();

const LEASE_MS = 3 * BRIEF_LEASE_MS;

describe.each([ioredis, nodeRedis, glide])("$name", (library) => {
  test.each(["SIGTERM", "SIGKILL"] as const)(
    "after %s, waiters and new callers are granted, and the holder restores its lease or learns of its loss",
    async (signalName) => {
      const { name, server } = scene;
      const [first, second, third] = [
        await scene.client(library),
        await scene.client(library),
        await scene.client(library),
      ];
      const lease = await first.mutex(name).acquire({ leaseMs: LEASE_MS });
      const { signal } = lease;
      const aborted = once(signal, "abort");
      const waiting = second.mutex(name).acquire({ waitMs: LONG_MS, leaseMs: LEASE_MS });
      await scene.queued(1);

      const oldPid = server.pid;
      process.kill(oldPid, signalName);
      await until(
        () =>
          server.command("PING").then(
            () => false,
            () => true,
          ),
        "the server to be gone",
      );
      await server.restart();
      expect(server.pid).not.toBe(oldPid);

      // The first to send a request gets the lock: the waiter, or the holder, which restores its lease while it is
      // valid.
      await until(async () => signal.aborted || (await scene.holder()) === lease.owner, "one of them to have it");
      const isPutBack = !signal.aborted && (await scene.holder()) === lease.owner;
      if (isPutBack) expect(await lease.release()).toBe("released");

      const next = await waiting;
      expect(next.token, "tokens rise although the server has forgotten the last one").toBeGreaterThan(lease.token);
      if (isPutBack) {
        expect(await next.release()).toBe("released");
        return;
      }
      await aborted;
      expect(["server-lost", "force-released", "expired"]).toContain(signal.reason.reason);
      expect(lease.validForMs()).toBe(0);
      await expect(lease.release()).rejects.toMatchObject({ code: "ERR_LOCK_LEASE_LOST" });
      expect(await scene.holder(), "the late release touched nothing").toBe(next.owner);
      expect(await scene.token()).toBe(next.token);
      expect(await next.release()).toBe("released");
      const fresh = await third.mutex(name).acquire({ waitMs: LONG_MS });
      expect(fresh.token).toBeGreaterThan(next.token);
      expect(await fresh.release()).toBe("released");
    },
  );
});

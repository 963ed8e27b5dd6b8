/** A master behind Sentinel that is replaced while its locks are held and waited for. */
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { type RedisSentinel, startSentinel } from "../../../../tests/support/redis-sentinel.js";
import type { CommandEvent } from "../../src/core/events.js";
import type { Mutex } from "../../src/index.js";
import { LONG_MS, until } from "../../src/testing/delays.js";
import { replicated } from "./replicated.js";
import { olderSentinels, sentinels, useClients } from "./topology-scene.js";

let topology: RedisSentinel;
beforeAll(async () => {
  // A busy machine that stalls for a moment must not cause a failover: a second master would also grant.
  topology = await startSentinel({ downAfterMs: 60_000 });
}, 150_000);
afterAll(() => topology.stop());

const scene = useClients();

/** The older clients are tested in the nightly run. */
const thorough = process.env.HOLDFAST_TESTS === "all" ? [...sentinels, ...olderSentinels] : sentinels;

describe.each(thorough)("$name", (library) => {
  test.each(["is replaced", "is killed"])(
    "if the master %s, the lock stays with its holder, and waiters are granted afterwards",
    async (how) => {
      const { name } = scene;
      const clients = await Promise.all([1, 2, 3].map(() => scene.client(library, topology)));
      const [first, second, third] = clients.map((client) => client.mutex(name)) as [Mutex, Mutex, Mutex];
      const lease = await first.acquire({ leaseMs: 4 * LONG_MS });
      const tokens = [lease.token];
      let inside = 1;
      const wait = async (mutex: Mutex): Promise<void> => {
        // Longer than sentinels and their clients need on a busy machine: they check once per second.
        const next = await mutex.acquire({ waitMs: 8 * LONG_MS, leaseMs: LONG_MS });
        inside += 1;
        expect(inside).toBe(1);
        tokens.push(next.token);
        inside -= 1;
        expect(await next.release()).toBe("released");
      };
      const waiting = [wait(second)];
      await until(async () => (await first.inspect()).waiterCount === 1, "a waiter");

      const old = await topology.master();
      // Unreplicated writes would be lost, and this test is not about that.
      await replicated(old);
      if (how === "is killed") {
        await old.kill();
        await topology.setDownAfter(500);
        onTestFinished(async () => {
          await old.restart();
          // A sentinel would do that by itself, ten seconds later.
          await old.command("REPLICAOF", "127.0.0.1", (await topology.master()).port);
        });
      } else {
        await topology.failover();
      }
      await until(async () => (await topology.master()).id !== old.id, "another master");
      await topology.setDownAfter(60_000);
      let refusal: unknown;
      const extended = (): Promise<boolean> =>
        lease.extend(4 * LONG_MS).then(
          () => true,
          (error: unknown) => {
            refusal = error;
            return false;
          },
        );
      await until(extended, "an extension by the new master").catch((error: Error) => {
        error.cause = refusal;
        throw error;
      });
      waiting.push(wait(third));
      const waiters = async (): Promise<number> =>
        (await first.inspect().catch(() => ({ waiterCount: 0 }))).waiterCount;
      await until(async () => (await waiters()) === 2, "two waiters");
      inside -= 1;
      expect(await lease.release()).toBe("released");
      await Promise.all(waiting);
      expect(tokens).toEqual(tokens.toSorted((a, b) => a - b));
    },
    150_000,
  );

  test("telemetry reports the current master as the server of a command, or no server", async () => {
    const client = await scene.client(library, topology);
    const servers: CommandEvent["server"][] = [];
    const hear = (event: unknown): void => {
      const { lockName, server } = event as CommandEvent; // what this channel publishes
      if (lockName === scene.name) servers.push(server);
    };
    subscribe("holdfast:command", hear);
    onTestFinished(() => void unsubscribe("holdfast:command", hear));
    await client.mutex(scene.name).run(() => {}, { waitMs: 2 * LONG_MS });
    const { port } = await topology.master();
    const said = library.name.startsWith("node-redis") ? undefined : { host: "127.0.0.1", port };
    expect(new Set(servers.map((server) => JSON.stringify(server)))).toEqual(new Set([JSON.stringify(said)]));
  });
});

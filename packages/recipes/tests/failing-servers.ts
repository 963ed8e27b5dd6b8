/** Servers that fail while a recipe runs: a master that is killed and replaced, and a server that restarts empty. */

import type { HoldfastOptions } from "holdfast";
import { Redis } from "ioredis";
import { expect, onTestFinished, vi } from "vitest";
import { type RedisSentinel, startSentinel } from "../../../tests/support/redis-sentinel.js";
import { type RedisServer, startRedis } from "../../../tests/support/redis-server.js";
import { eventually } from "./queue-scene.js";

/** A topology with a server that fails. */
export interface FailingServers {
  readonly name: string;
  start(): Promise<void>;
  stop(): Promise<void>;
  client(): Redis;
  /** Options that prevent a second grant while another holder still has the lock. */
  readonly options: Pick<HoldfastOptions, "failoverGrace">;
  /** Resolves when a server is available again. */
  fail(): Promise<void>;
}

/** Long enough that a short freeze of a busy machine does not promote a second master next to the first. */
const CALM_MS = 60_000;
const QUICK_MS = 500;

let topology: RedisSentinel | undefined;
let server: RedisServer | undefined;
/** One topology of each kind per test file. */
export const failingServers: readonly FailingServers[] = [
  {
    name: "behind Sentinel, when the master is killed",
    async start() {
      topology = await startSentinel({ downAfterMs: CALM_MS });
    },
    stop: async () => topology?.stop(),
    client() {
      const { name, addresses } = topology as RedisSentinel;
      return new Redis({ name, sentinels: addresses.map((each) => ({ ...each })) });
    },
    options: {},
    async fail() {
      const { master, settled, setDownAfter } = topology as RedisSentinel;
      const old = await master();
      await old.kill();
      await setDownAfter(QUICK_MS);
      onTestFinished(async () => {
        await old.restart();
        await old.command("REPLICAOF", "127.0.0.1", (await master()).port);
        await settled();
      });
      await vi.waitFor(async () => expect((await master()).id).not.toBe(old.id), eventually);
      await setDownAfter(CALM_MS);
    },
  },
  {
    name: "on a server that is restarted empty",
    async start() {
      server = await startRedis();
    },
    stop: async () => server?.stop(),
    client: () => new Redis({ port: server?.port ?? 0, retryStrategy: () => 20 }),
    // A server that restarts empty cannot know that it lost data.
    options: { failoverGrace: "strict" },
    fail: async () => server?.restart(),
  },
];

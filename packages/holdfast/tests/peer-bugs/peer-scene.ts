/** Two clients of one real server, the setup in which the peer libraries have these bugs. */
import { randomUUID } from "node:crypto";
import { Redis } from "ioredis";
import { afterAll, beforeAll, beforeEach } from "vitest";
import { type RedisServer, startRedis } from "../../../../tests/support/redis-server.js";
import { createHoldfast, type Holdfast, type Mutex } from "../../src/index.js";

/** Environment of a test. */
export interface PeerScene {
  readonly server: RedisServer;
  readonly redis: Redis;
  readonly holdfast: Holdfast;
  readonly rivalHoldfast: Holdfast;
  /** One lock with a unique name, through the first client (`lock`) and the second (`rival`). */
  readonly lock: Mutex;
  readonly rival: Mutex;
  readonly name: string;
  /** The lock's key, or with a suffix such as `:queue` one of its other keys. */
  key(suffix?: string): string;
  /** Starts counting the server's commands. Each script call counts as one in `scripts`. */
  count(): Promise<() => Promise<{ readonly scripts: number; readonly all: number; readonly evals: number }>>;
}

/** Starts a server and two clients, and uses both once so that no test counts script loads or connection setup. */
export function usePeerScene(): PeerScene {
  const scene = {} as { -readonly [Key in keyof PeerScene]: PeerScene[Key] };
  const clients: Redis[] = [];
  beforeAll(async () => {
    scene.server = await startRedis();
    for (let i = 0; i < 2; i += 1) clients.push(new Redis({ port: scene.server.port }));
    scene.redis = clients[0] as Redis;
    scene.holdfast = createHoldfast({ redis: clients[0] as Redis });
    scene.rivalHoldfast = createHoldfast({ redis: clients[1] as Redis });
    for (const holdfast of [scene.holdfast, scene.rivalHoldfast]) {
      const lease = await holdfast.mutex("warm").acquire();
      await lease.extend(30_000);
      await holdfast.mutex("warm").inspect();
      await lease.release();
    }
  });
  beforeEach(() => {
    scene.name = randomUUID();
    scene.lock = scene.holdfast.mutex(scene.name);
    scene.rival = scene.rivalHoldfast.mutex(scene.name);
    scene.key = (suffix = "") => `hf:mutex:{${scene.name}}${suffix}`;
    scene.count = async () => {
      await scene.server.command("CONFIG", "RESETSTAT");
      return async () => {
        const { config: _, info: __, ...calls } = await scene.server.commandStats();
        const all = Object.entries(calls)
          .filter(([command]) => !command.startsWith("config"))
          .reduce((sum, [, times]) => sum + times, 0);
        return { scripts: calls.evalsha ?? 0, evals: calls.eval ?? 0, all };
      };
    };
  });
  afterAll(async () => {
    await Promise.all([scene.holdfast?.close(), scene.rivalHoldfast?.close()]);
    for (const client of clients) client.disconnect();
    await scene.server?.stop();
  });
  return scene;
}

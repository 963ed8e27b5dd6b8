/**
 * How an acquire cleans up after a failed attempt: it releases what servers granted, and does not wait for servers
 * that do not reply.
 */
import { setImmediate } from "node:timers/promises";
import Redlock, { ExecutionError } from "@holdfast/redlock-compat";
import { Redis } from "ioredis";
import { expect, test } from "vitest";
import { startRedis } from "../../../tests/support/redis-server.js";
import { names } from "./places.js";

/** Longer than any test. */
const LONG_MS = 600_000;

/** A client whose replies the test triggers. It stores the locked values. */
class Server {
  readonly locked = new Set<string>();
  readonly calls: string[] = [];
  readonly #grants: boolean;
  readonly #gate: (call: string) => Promise<void>;

  constructor(grants: boolean, gate: (call: string) => Promise<void> = async () => {}) {
    this.#grants = grants;
    this.#gate = gate;
  }

  async evalsha(hash: string, _: number, [, value = ""]: readonly string[]): Promise<number> {
    this.calls.push(hash);
    await this.#gate(hash);
    if (this.locked.delete(value)) return 1;
    if (!this.#grants || this.calls.length > 1) return 0;
    this.locked.add(value);
    return 1;
  }
}

const redlockOf = (...servers: readonly Server[]): Redlock => new Redlock(servers as never[], { retryCount: 0 });
const never = (): Promise<void> => new Promise(() => {});

test("an acquire that fails does not wait for a server that hangs", async () => {
  const hung = new Server(true, never);
  const acquiring = redlockOf(new Server(false), hung, new Server(false)).acquire(["a"], LONG_MS);
  let isOver = false;
  const failed = expect(acquiring.finally(() => (isOver = true))).rejects.toBeInstanceOf(ExecutionError);
  // The acquire needs no timer, so it ends after a few turns of microtasks.
  for (let turn = 0; turn < 20 && !isOver; turn += 1) await setImmediate();
  expect(isOver).toBe(true);
  await failed;
});

test("a server that hung takes back its grant when it goes on", async () => {
  let goOn = (): void => {};
  const resumed = new Promise<void>((resolve) => {
    goOn = resolve;
  });
  const hung = new Server(true, () => resumed);
  const acquiring = redlockOf(new Server(false), hung, new Server(false)).acquire(["a"], LONG_MS);
  await expect(acquiring).rejects.toBeInstanceOf(ExecutionError);
  expect(hung.calls).toHaveLength(1);
  goOn();
  await expect.poll(() => [hung.calls.length, hung.locked.size]).toEqual([2, 0]);
});

test("an acquire that fails has taken back what a minority granted", async () => {
  const minority = new Server(true, async () => {
    await setImmediate();
  });
  const refusing = new Server(false);
  // The server in the minority replies to the acquire before the others, and to the release after them.
  const slow = new Server(false, async (hash) => {
    if (hash === redlock.scripts.acquireScript.hash) for (let turn = 0; turn < 5; turn += 1) await setImmediate();
  });
  const redlock = redlockOf(minority, refusing, slow);
  await expect(redlock.acquire(["a"], LONG_MS)).rejects.toBeInstanceOf(ExecutionError);
  expect(minority.calls).toEqual([redlock.scripts.acquireScript.hash, redlock.scripts.releaseScript.hash]);
  expect([...minority.locked]).toEqual([]);
});

test("an acquire is not woken by taking back its own failed attempt", async () => {
  const server = await startRedis();
  // With this option, replies are strings, which are not valid votes. So each attempt locks the resource, fails, and
  // is undone.
  const client = new Redis({ port: server.port, stringNumbers: true });
  const redlock = new Redlock([client], { retryCount: 3, retryDelay: 150, retryJitter: 0 });
  const calls: string[] = [];
  const evalsha = client.evalsha.bind(client) as (...args: unknown[]) => Promise<unknown>;
  client.evalsha = ((hash: string, ...rest: unknown[]) => {
    calls.push(hash);
    return evalsha(hash, ...rest);
  }) as never;
  const error = await redlock.acquire(names(1), LONG_MS).catch((reason: unknown) => reason);
  expect((error as ExecutionError).attempts).toHaveLength(4);
  // Four counted attempts, and one when the subscription is in place.
  expect(calls.filter((hash) => hash === redlock.scripts.acquireScript.hash).length).toBeLessThanOrEqual(5);
  client.disconnect();
  await server.stop();
});

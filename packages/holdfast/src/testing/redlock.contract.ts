/** The contract suite for a lock on a majority of servers, which every store must pass. */
import { hostname } from "node:os";
import { expect, test } from "vitest";
import { type HoldfastOptions, type Lease, UnsupportedError } from "../index.js";
import { BRIEF_LEASE_MS, LONG_MS, sleep, until, withLeaseInTime } from "./delays.js";
import { exclusiveContract } from "./exclusive.contract.js";
import { type MakeLock, type ServerUnderTest, type StoreUnderTest, useScene } from "./subject.js";

/** Options of `redlockContract`. */
export interface QuorumContractOptions {
  /** The number of servers: 3, 5, 7 or 9. @default 3 */
  readonly servers?: number | undefined;
}

/** Registers the tests. Call it inside a `describe` that names the store. */
export function redlockContract(subject: StoreUnderTest, { servers = 3 }: QuorumContractOptions = {}): void {
  const quorum = quorumOf(subject, servers);
  const makeLock: MakeLock = (holdfast, name) => holdfast.redlock(name);
  exclusiveContract(quorum, makeLock, { handOver: false, hasQueue: false });

  const scene = useScene(quorum, makeLock, { hasQueue: false });

  test("tokens rise with every grant to any client", async () => {
    const tokens: number[] = [];
    const locks = [scene.lock, scene.rival, scene.lock, scene.rival];
    const keep = (lease: Lease): void => void tokens.push(lease.token);
    await Promise.all(locks.map((lock) => lock.run(keep, { waitMs: LONG_MS })));
    await scene.lock.run(keep);
    expect(tokens.every(Number.isSafeInteger)).toBe(true);
    expect(tokens.toSorted((a, b) => a - b)).toEqual(tokens);
    expect(new Set(tokens).size).toBe(5);
  });

  test("inspect shows the process, label and remaining lease of the holder on a majority", async () => {
    const lease = await scene.lock.acquire({ label: "import 7", leaseMs: LONG_MS });
    let [holder] = await scene.holders(scene.rival);
    await until(async () => {
      [holder] = await scene.holders(scene.rival);
      return holder?.pid !== undefined;
    }, "the record");
    expect(holder).toMatchObject({
      owner: lease.owner,
      label: "import 7",
      host: hostname(),
      pid: process.pid,
      clientName: "first",
      token: lease.token,
      sinceAtMs: undefined,
    });
    expect(holder?.leaseLeftMs).toBeLessThanOrEqual(LONG_MS);
    await lease.release();
  });

  test("Holdfast refuses other kinds, which are not safe on a quorum", () => {
    expect(() => scene.holdfast.mutex(scene.name)).toThrow(UnsupportedError);
    expect(() => scene.holdfast.semaphore(scene.name, { permits: 2 })).toThrow(UnsupportedError);
  });
}

/**
 * A shorter form of `redlockContract` that tests only what differs between stores: requests, messages and failures
 * with several servers. Call it inside a `describe` that names the store.
 */
export function redlockStoreContract(subject: StoreUnderTest): void {
  const scene = useScene(quorumOf(subject, 3), (holdfast, name) => holdfast.redlock(name), { hasQueue: false });

  test("a held lock refuses another client, and a release wakes its waiter", async () => {
    const lease = await scene.lock.acquire({ label: "import 7" });
    expect(await scene.rival.tryAcquire()).toBeNull();
    expect((await scene.holders(scene.rival))[0]).toMatchObject({ owner: lease.owner, label: "import 7" });
    const waiting = scene.rival.acquire({ waitMs: LONG_MS });
    await scene.queued(1);
    expect(await lease.release()).toBe("released");
    const next = await waiting;
    expect(next.token).toBeGreaterThan(lease.token);
    expect(await next.release()).toBe("released");
  });

  test("a lease is renewed, and it is lost when a majority has forgotten it", () =>
    withLeaseInTime(async (leaseMs) => {
      await using lease = await scene.lock.acquire({ leaseMs, waitMs: LONG_MS });
      await sleep(leaseMs);
      lease.assertHeld();
      await scene.server.delete(...(await scene.server.keysWith(scene.name)));
      await expect(lease.extend(LONG_MS)).rejects.toMatchObject({ reason: "server-lost", token: lease.token });
    }, 3 * BRIEF_LEASE_MS));

  test("a forced release reaches the holder", async () => {
    const lease = await scene.lock.acquire({ leaseMs: LONG_MS });
    const aborted = new Promise<void>((resolve) => lease.signal.addEventListener("abort", () => resolve()));
    expect(await scene.rival.forceRelease({ token: lease.token })).toBe(true);
    await aborted;
    expect(lease.signal.reason.reason).toBe("force-released");
  });
}

/** Combines several servers of one store into one server to test. */
function quorumOf(subject: StoreUnderTest, count: number): StoreUnderTest {
  return {
    name: `${count} of ${subject.name}`,
    async start(): Promise<ServerUnderTest> {
      const servers = await Promise.all(Array.from({ length: count }, () => subject.start()));
      return {
        async connect(): Promise<HoldfastOptions> {
          const parts = await Promise.all(servers.map((server) => server.connect()));
          const subscribers = parts.map(({ subscriber }) => subscriber);
          return {
            redlock: parts.map(({ redis, store }) => redis ?? store ?? {}),
            ...(subscribers.includes(undefined)
              ? {}
              : { subscriber: (server: number) => subscribers[server]?.(server) }),
          };
        },
        keysWith: async (text) => [
          ...new Set((await Promise.all(servers.map((server) => server.keysWith(text)))).flat()),
        ],
        async pttl(key) {
          const all = await Promise.all(servers.map((server) => server.pttl(key)));
          return all.includes(-1) ? -1 : Math.max(...all);
        },
        setNx: async (key, value, leaseMs) =>
          (await Promise.all(servers.map((server) => server.setNx(key, value, leaseMs)))).every(Boolean),
        async delete(...keys) {
          await Promise.all(servers.map((server) => server.delete(...keys)));
        },
        async stop() {
          await Promise.all(servers.map((server) => server.stop()));
        },
      };
    },
  };
}

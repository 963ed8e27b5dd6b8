/** Connections of holders and waiters that the server closes, on each family of client libraries. */
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { afterEach, describe, expect, test } from "vitest";
import { BRIEF_LEASE_MS, LONG_MS, SOON_MS, until } from "../../src/testing/delays.js";
import { glide, ioredis, nodeRedis, useFaultScene } from "./scene.js";

const scene = useFaultScene();

const LEASE_MS = 5 * BRIEF_LEASE_MS;

let renewals: { owner: string; error: unknown }[] = [];
const onRenew = (message: unknown): void => void renewals.push(message as { owner: string; error: unknown });
afterEach(() => {
  unsubscribe("holdfast:renew", onRenew);
  renewals = [];
});

/** Closes all connections of that type, and returns their number. */
async function killAll(type: "normal" | "pubsub"): Promise<number> {
  return Number(await scene.server.command("CLIENT", "KILL", "TYPE", type, "SKIPME", "yes"));
}

describe.each([ioredis, nodeRedis, glide])("$name", (library) => {
  test("a holder whose connections are closed keeps its lease and renews it", async () => {
    const { name } = scene;
    const [first, second] = [await scene.client(library), await scene.client(ioredis)];
    const lease = await first.mutex(name).acquire({ leaseMs: LEASE_MS });
    const { signal } = lease;
    expect(await killAll("normal")).toBeGreaterThan(0);
    await killAll("pubsub");
    subscribe("holdfast:renew", onRenew);
    const isConfirmed = () => renewals.filter(({ owner, error }) => owner === lease.owner && error === undefined);
    await until(() => isConfirmed().length >= 3, "three renewals after the cut");
    expect(signal.aborted).toBe(false);
    lease.assertHeld();
    expect(await second.mutex(name).tryAcquire()).toBeNull();
    expect(await lease.release()).toBe("released");
    await (await second.mutex(name).acquire({ waitMs: SOON_MS })).release();
  });

  test("a waiter whose command connection is closed is still granted by the release", async () => {
    const { name } = scene;
    const [first, second] = [await scene.client(library), await scene.client(library)];
    const lease = await first.mutex(name).acquire({ leaseMs: LONG_MS });
    const waiting = second.mutex(name).acquire({ waitMs: LONG_MS });
    await scene.queued(1);
    expect(await killAll("normal")).toBeGreaterThan(0);
    expect(await lease.release()).toBe("released");
    const next = await waiting;
    expect(next.token).toBeGreaterThan(lease.token);
    expect(await scene.holder()).toBe(next.owner);
    expect(await next.release()).toBe("released");
    await until(async () => (await scene.holder()) === null, "the lock to be free");
  });

  test("a waiter whose inbox was disconnected during a release gets the lock after it reconnects", async () => {
    const { name, server } = scene;
    const proxy = await scene.proxy();
    const [first, second] = [await scene.client(ioredis), await scene.client(library, {}, proxy.port)];
    const lease = await first.mutex(name).acquire({ leaseMs: LONG_MS });
    const waiting = second.mutex(name).acquire({ waitMs: LONG_MS });
    await scene.queued(1);
    proxy.refuse(true);
    expect(await killAll("pubsub"), "two inboxes").toBe(2);
    expect(await lease.release()).toBe("released");
    expect(await scene.holder(), "nobody could be told").toBeNull();
    expect(await server.command("ZCARD", scene.keys.queue)).toBe(0);
    proxy.refuse(false);
    const next = await waiting;
    expect(next.token).toBeGreaterThan(lease.token);
    expect(await next.release()).toBe("released");
  });

  test("a holder whose inbox was disconnected is notified of a force-release once it is subscribed again", async () => {
    const { name, server } = scene;
    const [first, second] = [await scene.client(library), await scene.client(ioredis)];
    const lease = await first.mutex(name).acquire({ leaseMs: LONG_MS });
    const { signal } = lease;
    const inbox = `hf:in:${lease.owner.split("/")[0]}`;
    const listens = async () => String(await server.command("PUBSUB", "NUMSUB", inbox)).endsWith(",1");
    await until(listens, "the first subscription");
    expect(await killAll("pubsub")).toBe(1);
    await until(listens, "the second subscription");
    expect(await second.mutex(name).forceRelease({ token: lease.token })).toBe(true);
    await until(() => signal.aborted, "the notice");
    expect(signal.reason.reason).toBe("force-released");
    await expect(lease.release()).rejects.toThrow(signal.reason.message);
  });
});

test.each([ioredis, nodeRedis])(
  "callers on $name exclude each other while connections are closed repeatedly",
  async (library) => {
    const { name } = scene;
    const clients = [await scene.client(library), await scene.client(library)];
    let inside = 0;
    let most = 0;
    let sections = 0;
    let isOver = false;
    const tokens: number[] = [];
    const caller = async (index: number): Promise<void> => {
      while (!isOver) {
        const lease = await clients[index % 2]?.mutex(name).acquire({ waitMs: LONG_MS, leaseMs: LONG_MS });
        if (lease === undefined) return;
        inside += 1;
        most = Math.max(most, inside);
        tokens.push(lease.token);
        await new Promise(setImmediate);
        inside -= 1;
        sections += 1;
        await lease.release();
      }
    };
    const callers = Promise.all(Array.from({ length: 10 }, (_, index) => caller(index)));
    let cuts = 0;
    // A connection that is still being opened again cannot be cut, so the number of rounds is not fixed.
    for (let round = 0; round < 20 || cuts <= 20; round += 1) {
      const before = sections;
      cuts += await killAll(round % 2 === 0 ? "pubsub" : "normal");
      await until(() => sections > before, "a section after the cut");
    }
    isOver = true;
    await callers;
    expect(cuts).toBeGreaterThan(20);
    expect(most).toBe(1);
    expect(tokens.every((token, index) => index === 0 || token > (tokens[index - 1] ?? Infinity))).toBe(true);
    expect(await scene.holder()).toBeNull();
  },
);

/** Messages that are lost, duplicated, late or forged. Messages are hints: no lock may depend on them. */
import { Redis } from "ioredis";
import { expect, test } from "vitest";
import { BRIEF_LEASE_MS, LONG_MS, SOON_MS, until, withLeaseInTime } from "../../src/testing/delays.js";
import { ioredis, nodeRedis, useFaultScene } from "./scene.js";

const scene = useFaultScene();

const LEASE_MS = 2 * BRIEF_LEASE_MS;

test.each([ioredis, nodeRedis])(
  "a grant whose message was lost is found by $name at the next re-check",
  async (library) => {
    const { name } = scene;
    const proxy = await scene.proxy();
    const [first, second] = [await scene.client(ioredis), await scene.client(library, {}, proxy.port)];
    await withLeaseInTime(async (leaseMs) => {
      proxy.dropMessages(false);
      const dropped = proxy.counts.droppedMessages;
      const lease = await first.mutex(name).acquire({ leaseMs, waitMs: LONG_MS });
      const waiting = second.mutex(name).acquire({ waitMs: LONG_MS, leaseMs: LONG_MS });
      try {
        await scene.queued(1);
        proxy.dropMessages(true);
        await lease.release();
        const owner = await scene.holder();
        const token = await scene.token();
        const next = await waiting;
        // The grant, and maybe an echo with which the waiter checks its connection.
        expect(proxy.counts.droppedMessages).toBeGreaterThan(dropped);
        expect({ owner: next.owner, token: next.token }, "that very grant").toEqual({ owner, token });
      } finally {
        await lease.release().catch(() => {});
        expect(await (await waiting).release()).toBe("released");
      }
    }, LEASE_MS);
  },
);

test("if every message is lost, all waiters still get their turn, one at a time", async () => {
  const { name } = scene;
  const proxy = await scene.proxy();
  const holdfast = await scene.client(ioredis, {}, proxy.port);
  proxy.dropMessages(true);
  // A lost grant is found only when its lease expires, so the lease is brief.
  await withLeaseInTime(async (leaseMs) => {
    const before = proxy.counts.droppedMessages;
    let inside = 0;
    let most = 0;
    const turns = await Promise.allSettled(
      Array.from({ length: 5 }, () =>
        holdfast.mutex(name).run(
          async ({ token }) => {
            inside += 1;
            most = Math.max(most, inside);
            await new Promise(setImmediate);
            inside -= 1;
            return token;
          },
          { waitMs: LONG_MS, leaseMs },
        ),
      ),
    );
    const tokens = turns.map((turn) => (turn.status === "fulfilled" ? turn.value : turn.reason));
    expect(tokens).toEqual(tokens.map(() => expect.any(Number)));
    expect(proxy.counts.droppedMessages).toBeGreaterThan(before);
    expect(most).toBe(1);
    expect(new Set(tokens).size).toBe(5);
  });
});

test("a waiter ignores a grant that arrives after it has expired and another client holds the lock", async () => {
  const { name, server } = scene;
  const proxy = await scene.proxy();
  const [first, second, third] = [
    await scene.client(ioredis),
    await scene.client(ioredis, {}, proxy.port),
    await scene.client(ioredis),
  ];
  const lease = await first.mutex(name).acquire({ leaseMs: LONG_MS });
  const waiting = second.mutex(name).acquire({ waitMs: LONG_MS, leaseMs: BRIEF_LEASE_MS });
  await scene.queued(1);
  const [owner] = (await first.mutex(name).inspect()).waiters;
  const inbox = `hf:in:${owner?.owner.split("/")[0]}`;
  const observer = new Redis({ port: server.port });
  const heard: string[] = [];
  observer.on("message", (_, message: string) => heard.push(message));
  await observer.subscribe(inbox);
  proxy.dropMessages(true);
  await lease.release();
  await until(() => heard.length === 1 && proxy.counts.droppedMessages === 1, "the lost grant");
  // The grant expires unused, and another client acquires the lock before the waiter re-checks.
  await until(async () => (await scene.holder()) === null, "the end of the unused lease");
  const other = await third.mutex(name).acquire({ leaseMs: LONG_MS });
  proxy.dropMessages(false);
  const late = heard[0] ?? "";
  expect(await server.command("PUBLISH", inbox, late)).toBe(2);
  await scene.queued(1);
  expect(await scene.holder()).toBe(other.owner);
  // Send it again, now that the waiter has a reply that says it waits.
  expect(await server.command("PUBLISH", inbox, late)).toBe(2);
  const gotThrough = first.mutex(name).tryAcquire();
  expect(await gotThrough).toBeNull();
  let isGranted = false;
  void waiting.then(() => {
    isGranted = true;
  });
  await until(async () => (await server.commandStats()).evalsha !== undefined, "the server to answer");
  expect(isGranted).toBe(false);
  other.assertHeld();
  await other.release();
  const next = await waiting;
  expect(next.token).toBeGreaterThan(other.token);
  await next.release();
  observer.disconnect();
});

test("invalid messages in the inbox change nothing", async () => {
  const { name, server } = scene;
  const [first, second] = [await scene.client(ioredis), await scene.client(ioredis)];
  const lease = await first.mutex(name).acquire({ leaseMs: LONG_MS });
  const waiting = second.mutex(name).acquire({ waitMs: LONG_MS });
  await scene.queued(1);
  const owners = [lease.owner, (await first.mutex(name).inspect()).waiters[0]?.owner ?? ""];
  const rubbish = ["", "+", "-", "+1", "-x", "+1 2", "+999999 1 1", "-999999", "+-1 1 1", "+1e3 1 1", "\u0000", "{}"];
  for (const owner of owners) {
    for (const message of [...rubbish, "x".repeat(100_000)]) {
      expect(await server.command("PUBLISH", `hf:in:${owner.split("/")[0]}`, message)).toBe(1);
    }
  }
  lease.assertHeld();
  expect(await lease.release()).toBe("released");
  const next = await waiting;
  expect(await scene.holder()).toBe(next.owner);
  expect(await next.release()).toBe("released");
  await (await first.mutex(name).acquire({ waitMs: SOON_MS })).release();
});

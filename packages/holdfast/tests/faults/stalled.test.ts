/** A server that freezes for a while: the effect on holders, waiters and new callers, and what is left afterwards. */
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { once } from "node:events";
import { describe, expect, test } from "vitest";
import { EXPIRY_TIMES } from "../../../../tests/support/lifetimes.js";
import { type RenewEvent, StoreError } from "../../src/index.js";
import { BRIEF_LEASE_MS, LONG_MS, SOON_MS, sleep, until } from "../../src/testing/delays.js";
import { glide, ioredis, nodeRedis, outcomeOf, useFaultScene } from "./scene.js";

const scene = useFaultScene();

const LEASE_MS = 2 * BRIEF_LEASE_MS;
/** Short, so that requests time out within a brief test. */
const COMMAND_TIMEOUT_MS = BRIEF_LEASE_MS;

describe.each([ioredis, nodeRedis, glide])("$name", (library) => {
  test.each([false, true])(
    "the holder's signal aborts before its lease expires on the server; renewed: %s",
    async (renew) => {
      const { name, server, keys } = scene;
      const holdfast = await scene.client(library, { commandTimeoutMs: COMMAND_TIMEOUT_MS });
      const lease = await holdfast.mutex(name).acquire({ leaseMs: LEASE_MS, renew });
      const { signal } = lease;
      const aborted = once(signal, "abort");
      const renewals = countRenewals(lease.owner);
      if (renew) await until(() => renewals.confirmed >= 2, "two renewals");
      let endsAtMs: number;
      let confirmedAtRead: number;
      do {
        confirmedAtRead = renewals.confirmed;
        const [endsAt] = (await server.command("EVAL", EXPIRY_TIMES, 1, keys.lock)) as number[];
        endsAtMs = Number(endsAt);
      } while (confirmedAtRead !== renewals.confirmed);
      server.freeze();
      // A busy machine may run the timer late. So check event loop turns instead: no turn that begins after the lease
      // ends may pass without the abort. Immediates run after all timers of their turn.
      let lastTurnAtMs = Date.now();
      const turns = setInterval(() => {
        const turnAtMs = Date.now();
        setImmediate(() => {
          if (!signal.aborted) lastTurnAtMs = turnAtMs;
        });
      }, 1);
      await aborted;
      clearInterval(turns);
      renewals.stop();
      // A renewal confirmed between the read and the freeze moves the end of the lease.
      expect(lastTurnAtMs).toBeLessThan(endsAtMs + (renewals.confirmed === confirmedAtRead ? 0 : LEASE_MS));
      expect(signal.reason).toMatchObject({ code: "ERR_LOCK_LEASE_LOST", reason: "expired" });
      expect(lease.validForMs()).toBe(0);
      expect(await sooner(server.command("PING"), BRIEF_LEASE_MS), "it still stands still").toBeUndefined();
      server.resume();
    },
  );

  test("a frozen server makes the lease expire and calls fail in bounded time; all recover when it resumes", async () => {
    const { name, server } = scene;
    const options = { commandTimeoutMs: COMMAND_TIMEOUT_MS };
    const [first, second, third] = [
      await scene.client(library, options),
      await scene.client(library, options),
      await scene.client(library, options),
    ];
    const lease = await first.mutex(name).acquire({ leaseMs: LEASE_MS });
    const { signal } = lease;
    // The first use runs the server check, and until that has a reply no request of the lock is sent.
    await third.mutex(`warm:${name}`).run(() => {}, { leaseMs: LEASE_MS });
    const waiting = outcomeOf(second.mutex(name).acquire({ waitMs: LONG_MS, leaseMs: LEASE_MS }));
    await scene.queued(1);

    const frozenAtMs = performance.now();
    server.freeze();
    const started = outcomeOf(third.mutex(name).acquire({ waitMs: SOON_MS / 2, leaseMs: LEASE_MS }));
    const tried = outcomeOf(third.mutex(name).tryAcquire({ leaseMs: LEASE_MS }));
    const extended = outcomeOf(lease.extend(LEASE_MS));
    const looked = outcomeOf(third.mutex(name).inspect());
    await until(() => signal.aborted, "the loss");
    for (const [call, boundMs] of [
      [tried, COMMAND_TIMEOUT_MS],
      [extended, COMMAND_TIMEOUT_MS],
      [looked, COMMAND_TIMEOUT_MS],
      [started, SOON_MS / 2 + 2 * COMMAND_TIMEOUT_MS],
      // The waiter sends nothing before the lease it knows of ends. Then it retries for the length of its own lease.
      [waiting, 2 * LEASE_MS + 2 * COMMAND_TIMEOUT_MS],
    ] as const) {
      const { error, atMs } = await call;
      expect(error).toBeInstanceOf(StoreError);
      expect(error).toMatchObject({ mayHaveRun: true, transient: true, lockName: name });
      expect(atMs - frozenAtMs).toBeLessThan(boundMs + SOON_MS);
    }
    const releasing = outcomeOf(lease.release());
    server.resume();

    // Late effects of the old requests are undone, or at worst expire with their lease.
    const next = await second.mutex(name).acquire({ waitMs: LEASE_MS + SOON_MS });
    expect(next.token).toBeGreaterThan(lease.token);
    const released = await releasing;
    if (released.error !== undefined) {
      expect(released.error).toMatchObject({ code: expect.stringMatching(/^ERR_LOCK_(LEASE_LOST|STORE)$/) });
    }
    expect(await scene.holder()).toBe(next.owner);
    expect(await next.release()).toBe("released");
    await until(async () => (await server.command("EXISTS", scene.keys.queue)) === 0, "the queue to be empty");
    const last = await third.mutex(name).acquire({ waitMs: LEASE_MS + SOON_MS });
    expect(await last.release()).toBe("released");
    await until(async () => (await scene.holder()) === null, "the lock to be free");
  });

  test("close() on a frozen server ends in bounded time, and the lock becomes free when the server resumes", async () => {
    const { name, server } = scene;
    const options = { commandTimeoutMs: COMMAND_TIMEOUT_MS };
    const [first, second] = [await scene.client(library, options), await scene.client(library, options)];
    const lease = await first.mutex(name).acquire({ leaseMs: 2 * LONG_MS });
    const waits = [first, second].map((client) => outcomeOf(client.mutex(name).acquire({ waitMs: Infinity })));
    await scene.queued(2);
    server.freeze();
    const releasing = outcomeOf(lease.release());
    const closedAtMs = performance.now();
    await Promise.all([first.close(), second.close()]);
    expect(performance.now() - closedAtMs).toBeLessThan(6 * COMMAND_TIMEOUT_MS + SOON_MS);
    for (const wait of waits) expect((await wait).error).toMatchObject({ code: "ERR_LOCK_CLOSED" });
    await releasing;
    server.resume();
    await until(async () => (await scene.holder()) === null, "what was sent before to be carried out");
  });

  test("a freeze shorter than the lease loses no lease and no waiter", async () => {
    const { name, server } = scene;
    const [first, second] = [await scene.client(library), await scene.client(library)];
    const lease = await first.mutex(name).acquire({ leaseMs: LONG_MS });
    const waiting = second.mutex(name).acquire({ waitMs: LONG_MS });
    await scene.queued(1);
    server.freeze();
    const releasing = lease.release();
    expect(await sooner(releasing, BRIEF_LEASE_MS)).toBeUndefined();
    server.resume();
    expect(await releasing).toBe("released");
    const next = await waiting;
    expect(next.token).toBeGreaterThan(lease.token);
    expect(await next.release()).toBe("released");
  });
});

/** Resolves to the value of `promise`, or to undefined after `ms`. */
function sooner<Value>(promise: Promise<Value>, ms: number): Promise<Value | undefined> {
  promise.catch(() => {});
  return Promise.race([promise, sleep(ms).then(() => undefined)]);
}

/** Counts the renewals of a lease that the server has confirmed. */
function countRenewals(owner: string): { readonly confirmed: number; stop(): void } {
  let confirmed = 0;
  const onRenew = (message: unknown): void => {
    const renewal = message as RenewEvent;
    if (renewal.owner === owner && renewal.error === undefined) confirmed += 1;
  };
  subscribe("holdfast:renew", onRenew);
  return {
    get confirmed() {
      return confirmed;
    },
    stop: () => void unsubscribe("holdfast:renew", onRenew),
  };
}

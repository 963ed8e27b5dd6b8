/** Decorated methods while the servers of their locks fail. */
import { randomUUID } from "node:crypto";
import { Injectable, Module, type Type } from "@nestjs/common";
import { NestFactory } from "@nestjs/core";
import type { Lease } from "holdfast";
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import { failingServers } from "../../../recipes/tests/failing-servers.js";
import { eventually, held } from "../../../recipes/tests/queue-scene.js";
import { HeldLease, HoldfastModule, Leading, Locked, type Refusal, Scheduled } from "../../src/index.js";

// Longer than any outage here, even on a slow machine. A waiter without a reply for a full lease gives up.
const leaseMs = 10_000;
const closing: (() => unknown)[] = [];
afterEach(async () => {
  await Promise.allSettled(closing.splice(0).map((close) => close()));
});

/** Counts how often two leases are valid inside at the same time. */
class Room {
  /** A counter instead of an error because errors of a leader are not reported to the test. */
  clashes = 0;
  readonly #inside = new Set<Lease>();

  enter(lease: Lease | undefined): () => void {
    if (lease === undefined) throw new Error("no lease");
    if ([...this.#inside].some((other) => other.validForMs() > 0)) this.clashes += 1;
    this.#inside.add(lease);
    return () => void this.#inside.delete(lease);
  }
}

describe.each(failingServers)("$name", { timeout: 120_000 }, (servers) => {
  beforeAll(() => servers.start(), 60_000);
  afterAll(() => servers.stop());

  async function appWith<Provider>(provider: Type<Provider>): Promise<Provider> {
    const redis = servers.client();
    redis.on("error", () => {});
    @Module({ imports: [HoldfastModule.forRoot({ redis, ...servers.options })], providers: [provider] })
    class App {}
    const app = await NestFactory.createApplicationContext(App, { logger: false, abortOnError: false });
    closing.push(async () => {
      await app.close();
      redis.disconnect();
    });
    return app.get(provider);
  }

  test("@Locked runs one at a time, and reports a lost lock to its holder", async () => {
    const room = new Room();
    @Injectable()
    class Invoices {
      @Locked({ name: (id: string) => `invoice:${id}`, leaseMs, waitMs: Infinity })
      async close(_id: string, work: () => Promise<string>, @HeldLease() lease?: Lease): Promise<string> {
        const leave = room.enter(lease);
        const value = await work();
        leave();
        return value;
      }
    }
    const [one, other] = [await appWith(Invoices), await appWith(Invoices)];
    const id = randomUUID();
    await other.close(id, async () => "warm");
    const first = held<string>();
    const running = one.close(id, first.work).catch((error: unknown) => (error as Error).name);
    await first.began;
    const waiting = other.close(id, async () => "second");
    await servers.fail();
    first.end("first");
    expect(["first", "WorkLostError"]).toContain(await running);
    expect(await waiting).toBe("second");
    expect(room.clashes).toBe(0);
  });

  test("@Scheduled starts no second run during the first, and one later only if servers lose data", async () => {
    const room = new Room();
    const first = held<string>();
    let runs = 0;
    @Injectable()
    class Nightly {
      @Scheduled(`nightly:${randomUUID()}`, { everyMs: 86_400_000, leaseMs })
      async report(@HeldLease() lease?: Lease): Promise<string | Refusal> {
        runs += 1;
        const leave = room.enter(lease);
        const value = runs === 1 ? await first.work() : "again";
        leave();
        return value;
      }
    }
    const [one, other] = [await appWith(Nightly), await appWith(Nightly)];
    const report = (): Promise<unknown> => one.report().catch((error: unknown) => (error as Error).name);
    let running = report();
    // A server that has just been promoted refuses at first.
    await vi.waitFor(async () => {
      const refused = await Promise.race([first.began, running]);
      if (refused !== undefined) running = report();
      expect(refused).toBeUndefined();
    }, eventually);
    expect(await other.report()).toMatchObject({ outcome: "refused", reason: "already-done" });
    await servers.fail();
    // During the change, this call is refused, or runs because the first run was lost.
    const meanwhile = await other.report();
    first.end("first");
    const ended = await running;
    expect(["first", "WorkLostError"]).toContain(ended);
    if (ended === "first") expect(meanwhile).not.toBe("again");
    await vi.waitFor(async () => expect(await other.report()).toMatchObject({ reason: "already-done" }), eventually);
    expect(runs).toBeLessThanOrEqual(2);
    expect(room.clashes).toBe(0);
  });

  test("@Leading elects a leader again, and two valid leaders never overlap", async () => {
    const room = new Room();
    const name = `scheduler:${randomUUID()}`;
    const told: (readonly [app: string, token: number])[] = [];
    const leader = (mark: string): Type<object> => {
      @Injectable()
      class Leader {
        @Leading(name, { delayMaxMs: 0, leaseMs })
        async lead(@HeldLease() lease?: Lease): Promise<void> {
          const leave = room.enter(lease);
          const { signal, token } = lease as Lease;
          told.push([mark, token]);
          await new Promise((resolve) => signal.addEventListener("abort", resolve));
          leave();
        }
      }
      return Leader;
    };
    await appWith(leader("one"));
    await vi.waitFor(() => expect(told).toHaveLength(1), eventually);
    await appWith(leader("other"));
    await servers.fail();
    // Either application may lead after the failure. Closing the first one forces the other to lead, in a higher term.
    await closing[0]?.();
    await vi.waitFor(() => expect(told.at(-1)?.[0]).toBe("other"), eventually);
    const tokens = told.map(([, token]) => token);
    expect(tokens).toEqual([...new Set(tokens)].toSorted((a, b) => a - b));
    expect(room.clashes).toBe(0);
  });
});

/** Methods that run in one of many Nest applications: as the leader, or because a schedule fired in all of them. */
import { randomUUID } from "node:crypto";
import { type DynamicModule, Injectable, type LoggerService, Module, Scope, type Type } from "@nestjs/common";
import { NestFactory } from "@nestjs/core";
import { Cron, Interval, ScheduleModule, SchedulerRegistry } from "@nestjs/schedule";
import { createHoldfast, type Holdfast, type Leadership, type Lease } from "holdfast";
import { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { type RedisServer, startRedis } from "../../../../tests/support/redis-server.js";
import { HeldLease, HoldfastModule, Leading, Locked, type Refusal, Scheduled } from "../../src/index.js";
import { hears } from "../hears.js";

const eventually = { timeout: 15_000, interval: 10 };
let server: RedisServer;
let redis: Redis;
let direct: Holdfast;
let id: string;
const closing: (() => Promise<unknown>)[] = [];

beforeAll(async () => {
  server = await startRedis();
  redis = new Redis({ port: server.port });
  direct = createHoldfast({ redis });
});

beforeEach(() => {
  id = randomUUID();
});

afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

afterAll(async () => {
  await direct?.close();
  redis?.disconnect();
  await server?.stop();
});

interface Started<Provider> {
  readonly provider: Provider;
  readonly registry: SchedulerRegistry;
  readonly close: () => Promise<void>;
}

async function start<Provider>(
  provider: Type<Provider>,
  logger: LoggerService | false = false,
  schedule: DynamicModule[] = [ScheduleModule.forRoot()],
): Promise<Started<Provider>> {
  @Module({ imports: [HoldfastModule.forRoot({ redis, graceMs: 5_000 }), ...schedule], providers: [provider] })
  class App {}
  const app = await NestFactory.createApplicationContext(App, { logger, abortOnError: false });
  closing.push(() => app.close());
  return {
    provider: await app.resolve(provider).catch(() => app.get(provider)),
    registry: app.get(SchedulerRegistry),
    close: () => app.close(),
  };
}

describe("a leading method", () => {
  /** Every test needs its own class because a class has one election. */
  function leader(name: string) {
    @Injectable()
    class Leader {
      static leading = 0;
      readonly terms: number[] = [];
      reason: unknown;

      @Leading(name, { delayMaxMs: 0, leaseMs: 5_000 })
      async lead(@HeldLease() lease?: Lease): Promise<void> {
        Leader.leading += 1;
        expect(Leader.leading).toBe(1);
        this.terms.push((lease as Leadership).term);
        const { signal } = lease as Lease;
        await new Promise((resolve) => signal.addEventListener("abort", resolve));
        this.reason = signal.reason;
        Leader.leading -= 1;
      }
    }
    return Leader;
  }

  test("runs in one application, and in the next one when that shuts down", async () => {
    const Leader = leader(`scheduler:${id}`);
    const first = await start(Leader);
    await vi.waitFor(() => expect(first.provider.terms).toHaveLength(1), eventually);
    const second = await start(Leader);
    expect(second.provider.terms).toEqual([]);
    await first.close();
    expect(first.provider.reason).toMatchObject({ reason: "closing" });
    await vi.waitFor(() => expect(second.provider.terms).toHaveLength(1), eventually);
    expect(second.provider.terms[0]).toBeGreaterThan(first.provider.terms[0] as number);
    await second.close();
    expect(Leader.leading).toBe(0);
    expect((await direct.election(`scheduler:${id}`).inspect()).holders).toEqual([]);
  });

  test("is notified when it loses its lease, and leads again", async () => {
    const name = `scheduler:${id}`;
    const { provider } = await start(leader(name));
    await vi.waitFor(() => expect(provider.terms).toHaveLength(1), eventually);
    const [holder] = (await direct.election(name).inspect()).holders;
    await hears(redis, holder?.owner as string);
    await direct.election(name).forceRelease({ token: holder?.token as number });
    await vi.waitFor(() => expect(provider.terms).toHaveLength(2), eventually);
    expect(provider.reason).toMatchObject({ reason: "force-released" });
  });

  test("is logged when it fails, and leads again", async () => {
    const name = `scheduler:${id}`;
    let runs = 0;

    @Injectable()
    class Failing {
      @Leading(name, { delayMaxMs: 0, noLease: true })
      async lead(): Promise<void> {
        runs += 1;
        if (runs === 1) throw new Error("no route to the feed");
      }
    }
    const error = vi.fn();
    await start(Failing, { log: () => {}, warn: () => {}, error });
    await vi.waitFor(() => expect(runs).toBeGreaterThan(1), eventually);
    const said = error.mock.calls.map((words) => words.join(" ")).join("\n");
    expect(said).toContain(
      `Failing.lead stopped leading, or was not elected, in the election "${name}". Holdfast tries again in 1000 ms.`,
    );
    expect(said).toContain("no route to the feed");
  });

  test("is refused in a request-scoped class when the application starts", async () => {
    @Injectable({ scope: Scope.REQUEST })
    class PerRequest {
      @Leading("scheduler", { noLease: true })
      async lead(): Promise<void> {}
    }
    await expect(start(PerRequest)).rejects.toThrow("@Leading on PerRequest.lead: the class must have one instance");
  });

  test("is refused in a class that is instantiated twice when the application starts", async () => {
    const Leader = leader(`scheduler:${id}`);
    @Module({ providers: [Leader] })
    class One {}
    @Module({ providers: [Leader] })
    class Other {}
    @Module({ imports: [HoldfastModule.forRoot({ redis }), One, Other] })
    class App {}
    const starting = NestFactory.createApplicationContext(App, { logger: false, abortOnError: false });
    await expect(starting).rejects.toThrow(
      /@Leading on Leader.lead: Leader.lead is already a candidate in the election "scheduler:/,
    );
    expect((await direct.election(`scheduler:${id}`).inspect()).holders).toEqual([]);
  });

  test.each<[object, string]>([
    [{ leaseMs: 1, noLease: true }, "leaseMs"],
    [{ signal: AbortSignal.abort(), noLease: true }, "signal"],
    [{ noLease: true, unknown: 1 }, "unknown"],
    [{}, "the method needs its lease to detect a loss"],
  ])("is refused with an invalid option when the class is defined: %o", (options, message) => {
    expect(() => {
      class Wrong {
        @Leading("a", { ...options })
        async lead(): Promise<void> {}
      }
      return Wrong;
    }).toThrow(message);
  });
});

describe("a scheduled method", () => {
  function nightly(name: string) {
    @Injectable()
    class Nightly {
      readonly ran: (string | undefined)[] = [];

      @Scheduled(name, { everyMs: 86_400_000 })
      async report(@HeldLease() lease?: Lease): Promise<"done" | Refusal> {
        this.ran.push(lease?.name);
        lease?.assertHeld();
        return "done";
      }
    }
    return Nightly;
  }

  test("runs in one application per period, and the others report why they did not run", async () => {
    const Nightly = nightly(`nightly:${id}`);
    const apps = [await start(Nightly), await start(Nightly), await start(Nightly)];
    const found = await Promise.all(apps.map(({ provider }) => provider.report()));
    expect(found.filter((each) => each === "done")).toHaveLength(1);
    expect(apps.flatMap(({ provider }) => provider.ran)).toEqual([`nightly:${id}`]);
    for (const each of found.filter((one) => one !== "done")) expect(each).toMatchObject({ outcome: "refused" });
    expect(await apps[0]?.provider.report()).toMatchObject({ outcome: "refused", reason: "already-done" });
  });

  test("rethrows an error unchanged", async () => {
    const error = new Error("no data");

    @Injectable()
    class Failing {
      @Scheduled(`failing:${id}`, { everyMs: 86_400_000, noLease: true })
      async report(): Promise<Refusal> {
        throw error;
      }
    }
    const { provider } = await start(Failing);
    await expect(provider.report()).rejects.toBe(error);
  });

  test.each<["above" | "below"]>([["above"], ["below"]])("is fired by @Cron %s @Scheduled", async (where) => {
    const name = `cron:${id}`;
    const ran: unknown[] = [];

    @Injectable()
    class Above {
      @Cron("* * * * * *", { name: "above" })
      @Scheduled(name, { everyMs: 86_400_000 })
      async tick(@HeldLease() lease?: Lease): Promise<unknown> {
        return ran.push(lease?.name);
      }
    }

    @Injectable()
    class Below {
      @Scheduled(name, { everyMs: 86_400_000 })
      @Cron("* * * * * *", { name: "below" })
      async tick(@HeldLease() lease?: Lease): Promise<unknown> {
        return ran.push(lease?.name);
      }
    }
    const apps: Started<object>[] = [];
    for (let count = 0; count < 2; count += 1) apps.push(await start<object>(where === "above" ? Above : Below));
    for (const { registry } of apps) expect([...registry.getCronJobs().keys()]).toEqual([where]);
    const fired = (): number[] => apps.map(({ registry }) => registry.getCronJob(where).lastDate()?.getTime() ?? 0);
    await vi.waitFor(() => expect(Math.min(...fired())).toBeGreaterThan(0), eventually);
    await vi.waitFor(() => expect(ran).toEqual([name]), eventually);
    const [first = 0] = fired();
    await vi.waitFor(() => expect(Math.min(...fired())).toBeGreaterThan(first), eventually);
    expect(ran).toEqual([name]);
  });

  test.each<[object, string]>([
    [{ noLease: true }, "everyMs"],
    [{ everyMs: 1, noLease: true }, "everyMs"],
    [{ everyMs: 60_000, signal: AbortSignal.abort(), noLease: true }, "signal"],
    [{ everyMs: 60_000 }, "the method needs its lease to detect a loss"],
  ])("is refused with an invalid option when the class is defined: %o", (options, message) => {
    expect(() => {
      class Wrong {
        @Scheduled("a", { ...options } as never)
        async report(): Promise<Refusal> {
          throw new Error("never");
        }
      }
      return Wrong;
    }).toThrow(message);
  });

  test("may return nothing, and otherwise its return type includes the refusal", async () => {
    const name = `typed:${id}`;
    let count = 0;

    @Injectable()
    class Typed {
      @Interval(1_000_000)
      @Scheduled(name, { everyMs: 86_400_000, noLease: true })
      async tick(): Promise<void> {
        count += 1;
      }

      // @ts-expect-error the return type lacks the refusal
      @Scheduled("b", { everyMs: 60_000, noLease: true })
      async report(): Promise<string> {
        return "";
      }
    }
    const { provider } = await start(Typed);
    await provider.tick();
    await provider.tick();
    expect(count).toBe(1);
  });

  test("has one lease, so a second decorator is refused", () => {
    expect(() => {
      class Both {
        @Locked({ name: "a", noLease: true })
        @Scheduled("b", { everyMs: 60_000, noLease: true })
        async report(): Promise<Refusal> {
          throw new Error("never");
        }
      }
      return Both;
    }).toThrow("@Locked on report: it already has @Scheduled");
    expect(() => {
      class Both {
        @Leading("a", { noLease: true })
        @Locked({ name: "a", noLease: true })
        async report(): Promise<void> {}
      }
      return Both;
    }).toThrow("@Leading on report: it already has @Locked");
  });
});

/** Methods under locks, with TypeScript's `experimentalDecorators`, in real Nest applications. */
import { randomUUID } from "node:crypto";
import { Injectable, Module, type Type } from "@nestjs/common";
import { NestFactory } from "@nestjs/core";
import { createHoldfast, type Holdfast, type Lease } from "holdfast";
import { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { type RedisServer, startRedis } from "../../../../tests/support/redis-server.js";
import { deferred, sleep } from "../../../holdfast/src/testing/delays.js";
import {
  HeldLease,
  HoldfastModule,
  type HoldfastModuleOptions,
  Locked,
  type MakeLock,
  type Refusal,
  WorkLostError,
} from "../../src/index.js";
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

/** Starts an application with these providers and returns the first of them. */
async function appWith<First>(
  providers: [Type<First>, ...Type[]],
  options: HoldfastModuleOptions = { redis },
): Promise<First> {
  @Module({ imports: [HoldfastModule.forRoot(options)], providers })
  class App {}
  const app = await NestFactory.createApplicationContext(App, { logger: false, abortOnError: false });
  closing.push(() => app.close());
  return app.get(providers[0]);
}

@Injectable()
class Invoices {
  readonly prefix = "closed ";
  readonly leases: (Lease | undefined)[] = [];
  inside = 0;
  most = 0;

  @Locked({ name: (id: string) => `invoice:${id}` })
  async close(id: string, @HeldLease() lease?: Lease): Promise<string> {
    this.leases.push(lease);
    lease?.assertHeld();
    return this.prefix + id;
  }

  @Locked({ name: (id: string) => `invoice:${id}`, waitMs: Infinity, fairness: "strict" })
  async visit(id: string, work: () => Promise<unknown>, @HeldLease() lease?: Lease): Promise<number> {
    this.inside += 1;
    this.most = Math.max(this.most, this.inside);
    await work();
    this.inside -= 1;
    return lease?.token ?? Number(id);
  }

  @Locked({ name: (id: string) => `invoice:${id}` })
  async fail(_id: string, error: unknown, @HeldLease() _lease?: Lease): Promise<never> {
    throw error;
  }

  @Locked({ name: (id: string) => `invoice:${id}` })
  async watch(_id: string, began: () => void, isObedient: boolean, @HeldLease() lease?: Lease): Promise<string> {
    const { signal } = lease as Lease;
    began();
    await new Promise((resolve) => signal.addEventListener("abort", resolve));
    if (isObedient) throw signal.reason;
    return "all the same";
  }

  @Locked({ name: (id: string) => `invoice:${id}`, waitMs: 0, whenBusy: "skip" })
  async skip(_id: string, @HeldLease() _lease?: Lease): Promise<"ran" | Refusal> {
    return "ran";
  }

  @Locked({ name: (id: string) => `invoice:${id}`, waitMs: 0 })
  async insist(_id: string, @HeldLease() _lease?: Lease): Promise<string> {
    return "ran";
  }

  @Locked({ name: "invoices", noLease: true })
  async count(): Promise<number> {
    return this.leases.length;
  }

  @Locked({
    name: (id: string) => `invoices:${id}`,
    lock: (holdfast, name) => holdfast.semaphore(name, { permits: 2 }),
    waitMs: Infinity,
    noLease: true,
  })
  async two(_id: string, work: () => Promise<unknown>): Promise<void> {
    this.inside += 1;
    this.most = Math.max(this.most, this.inside);
    await work();
    this.inside -= 1;
  }
}

describe("a locked method", () => {
  test("gets the lease, and keeps its arguments, its `this` and its return value", async () => {
    const invoices = await appWith([Invoices]);
    expect(await invoices.close(id)).toBe(`closed ${id}`);
    const [lease] = invoices.leases;
    expect(lease).toMatchObject({ name: `invoice:${id}` });
    expect(lease?.token).toBeGreaterThan(0);
    expect(() => lease?.assertHeld()).toThrow("is over");
    expect((await direct.mutex(`invoice:${id}`).inspect()).holders).toEqual([]);
    expect(await invoices.count()).toBe(1);
  });

  test("runs for one caller at a time per name, across all applications", async () => {
    const one = await appWith([Invoices]);
    const other = await appWith([Invoices], { redis: new Redis({ port: server.port }).on("ready", keep) });
    const tokens: number[] = [];
    let inside = 0;
    let most = 0;
    const work = async (): Promise<void> => {
      inside += 1;
      most = Math.max(most, inside);
      await sleep(1);
      inside -= 1;
    };
    const all = Array.from({ length: 50 }, async (_, at) =>
      tokens.push(await (at % 2 === 0 ? one : other).visit(id, work)),
    );
    await Promise.all(all);
    expect(most).toBe(1);
    expect(tokens).toEqual([...tokens].sort((a, b) => a - b));
    expect(new Set(tokens).size).toBe(50);
  });

  function keep(this: Redis): void {
    closing.push(async () => this.disconnect());
  }

  test("does not block calls with other names", async () => {
    const invoices = await appWith([Invoices]);
    const both = (): Promise<unknown> => vi.waitFor(() => expect(invoices.most).toBe(2), eventually);
    const done = deferred<void>();
    const first = invoices.visit(id, () => both().then(() => done.promise));
    await invoices.visit(`${id}/2`, () => both());
    done.resolve();
    await first;
    expect(invoices.most).toBe(2);
  });

  test("can use a lock other than a mutex", async () => {
    const invoices = await appWith([Invoices]);
    const both = (): Promise<unknown> => vi.waitFor(() => expect(invoices.most).toBe(2), eventually);
    await Promise.all(Array.from({ length: 6 }, () => invoices.two(id, both)));
    expect(invoices.most).toBe(2);
  });

  test.each<[string, unknown]>([
    ["an error", Object.assign(new RangeError("card refused"), { code: "E_CARD" })],
    ["a value that is not an Error", { status: 402 }],
  ])("rethrows %s unchanged, and releases the lock", async (_, error) => {
    const invoices = await appWith([Invoices]);
    await expect(invoices.fail(id, error)).rejects.toBe(error);
    expect((await direct.mutex(`invoice:${id}`).inspect()).holders).toEqual([]);
  });

  test("is notified of a lost lease while it runs", async () => {
    const invoices = await appWith([Invoices]);
    const began = deferred<void>();
    const watching = invoices.watch(id, began.resolve, true);
    await began.promise;
    await takeAway();
    await expect(watching).rejects.toMatchObject({
      name: "LeaseLostError",
      reason: "force-released",
      forced: { by: "ana" },
    });
  });

  test("fails with its value if it finishes without the lease", async () => {
    const invoices = await appWith([Invoices]);
    const began = deferred<void>();
    const watching = invoices.watch(id, began.resolve, false);
    await began.promise;
    await takeAway();
    await expect(watching).rejects.toBeInstanceOf(WorkLostError);
    await expect(watching).rejects.toMatchObject({ value: "all the same", code: "ERR_LOCK_LEASE_LOST" });
  });

  async function takeAway(): Promise<void> {
    const lock = direct.mutex(`invoice:${id}`);
    const [holder] = (await lock.inspect()).holders;
    await hears(redis, holder?.owner as string);
    await lock.forceRelease({ token: holder?.token as number, by: "ana", reason: "stuck" });
  }

  test("reports the holder, as an error or as a return value", async () => {
    const invoices = await appWith([Invoices]);
    const lease = await direct.mutex(`invoice:${id}`).acquire({ label: "ana's import" });
    await expect(invoices.insist(id)).rejects.toMatchObject({
      name: "AcquireTimeoutError",
      holder: { label: "ana's import", pid: process.pid },
    });
    expect(await invoices.skip(id)).toMatchObject({ outcome: "refused", reason: "held", label: "ana's import" });
    await lease.release();
    await direct.pause(`invoice:${id}`, { by: "ana", label: "year-end" });
    expect(await invoices.skip(id)).toMatchObject({ reason: "paused", label: "year-end" });
    await direct.resume(`invoice:${id}`, { by: "ana" });
    expect(await invoices.skip(id)).toBe("ran");
  });

  test("does not retain the names it was called with", { timeout: 120_000 }, async () => {
    const invoices = await appWith([Invoices], { redis, prefix: "memory" });
    const collect = await collector();
    const call = async (from: number): Promise<number> => {
      for (let at = from; at < from + 10_000; at += 100) {
        await Promise.all(Array.from({ length: 100 }, (_, more) => invoices.insist(`${id}/${at + more}`)));
      }
      collect();
      return process.memoryUsage().heapUsed;
    };
    const before = await call(0);
    const after = await call(10_000);
    // One retained object per name would add more than a megabyte.
    expect(after - before).toBeLessThan(1_000_000);
  });

  async function collector(): Promise<() => void> {
    const { setFlagsFromString } = await import("node:v8");
    const { runInNewContext } = await import("node:vm");
    setFlagsFromString("--expose_gc");
    return runInNewContext("gc") as () => void;
  }
});

test("a method may call another of the same name under a reentrant lock", async () => {
  const lock: MakeLock = (holdfast, name) => holdfast.reentrantMutex(name);

  @Injectable()
  class Nested {
    @Locked({ name: (id: string) => `nested:${id}`, lock, waitMs: 0, noLease: true })
    async outer(id: string): Promise<string> {
      return `outer ${await this.inner(id)}`;
    }

    @Locked({ name: (id: string) => `nested:${id}`, lock, waitMs: 0, noLease: true })
    async inner(_id: string): Promise<string> {
      return "inner";
    }
  }
  const nested = await appWith([Nested]);
  expect(await nested.outer(id)).toBe("outer inner");
});

test("an Observable is refused because its work would run without the lock", async () => {
  @Injectable()
  class Lazy {
    @Locked({ name: "lazy", noLease: true })
    async watch(): Promise<object> {
      return { subscribe: () => {} };
    }
  }
  await expect((await appWith([Lazy])).watch()).rejects.toThrow("it returned an Observable");
});

describe("inheritance", () => {
  @Injectable()
  class Base {
    readonly calls: string[] = [];

    @Locked({ name: (id: string) => `base:${id}`, waitMs: 0 })
    async inherited(id: string, @HeldLease() lease?: Lease): Promise<string> {
      this.calls.push(`base ${lease?.name}`);
      return id;
    }

    @Locked({ name: (id: string) => `base:${id}`, waitMs: 0 })
    async bare(id: string, @HeldLease() lease?: Lease): Promise<string> {
      return `${lease?.name}${id}`;
    }

    @Locked({ name: (id: string) => `base:${id}`, waitMs: 0 })
    async both(_id: string, @HeldLease() lease?: Lease): Promise<string | undefined> {
      return lease?.name;
    }
  }

  @Injectable()
  class Derived extends Base {
    override async bare(id: string, lease?: Lease): Promise<string> {
      return `${lease?.name} ${id}`;
    }

    @Locked({ name: (id: string) => `derived:${id}`, waitMs: 0 })
    override async both(id: string, @HeldLease() lease?: Lease): Promise<string | undefined> {
      return `${lease?.name} ${await super.both(id)}`;
    }
  }

  test("an inherited method is locked, with the instance it is called on", async () => {
    const derived = await appWith([Derived]);
    expect(await derived.inherited(id)).toBe(id);
    expect(derived.calls).toEqual([`base base:${id}`]);
    await direct
      .mutex(`base:${id}`)
      .run(() => expect(derived.inherited(id)).rejects.toThrow("was not acquired immediately"));
  });

  test("an overriding method uses its own lock, or none without a decorator", async () => {
    const derived = await appWith([Derived]);
    expect(await derived.bare(id)).toBe(`undefined ${id}`);
    expect(await derived.both(id)).toBe(`derived:${id} base:${id}`);
  });
});

describe("a class is refused", () => {
  const open = { name: "a" };

  test("that does not say where the lease goes, when it is defined", () => {
    expect(() => {
      class Forgetful {
        @Locked(open)
        async close(): Promise<void> {}
      }
      return Forgetful;
    }).toThrow(/@Locked on close: the method needs its lease to detect a loss/);
  });

  test("that specifies its lease or its lock twice", () => {
    expect(() => {
      class Twice {
        @Locked({ ...open, leaseAt: 0 })
        async close(@HeldLease() _lease?: Lease): Promise<void> {}
      }
      return Twice;
    }).toThrow("use only one of @HeldLease(), leaseAt and noLease; got 2");
    expect(() => {
      class Both {
        @Locked(open)
        async close(@HeldLease() _a?: Lease, @HeldLease() _b?: Lease): Promise<void> {}
      }
      return Both;
    }).toThrow("but two have it");
    expect(() => {
      class TwoLocks {
        @Locked({ name: "a", noLease: true })
        @Locked({ name: "b", noLease: true })
        async close(): Promise<void> {}
      }
      return TwoLocks;
    }).toThrow("@Locked on close: it already has @Locked");
  });

  test("whose locked method is static", () => {
    expect(() => {
      class Static {
        @Locked({ name: "a", noLease: true })
        static async close(): Promise<void> {}

        async reopen(): Promise<void> {}
      }
      return Static;
    }).toThrow("@Locked is for instance methods; close is not one");
  });

  test("by the compiler, if its method does not fit the name or may not return a refusal", () => {
    class Typed {
      // @ts-expect-error the name function takes a number
      @Locked({ name: (id: number) => `invoice:${id}`, noLease: true })
      async wrong(_id: string): Promise<void> {}

      // @ts-expect-error the name function takes two arguments
      @Locked({ name: (id: string, part: string) => `invoice:${id}/${part}`, noLease: true })
      async few(_id: string): Promise<void> {}

      // @ts-expect-error the return type lacks the refusal
      @Locked({ name: "a", noLease: true, whenBusy: "skip" })
      async sure(): Promise<string> {
        return "";
      }

      // @ts-expect-error the method returns no promise
      @Locked({ name: "a", noLease: true })
      now(): string {
        return "";
      }

      @Locked({ name: (id: string | number) => `invoice:${id}`, noLease: true })
      async wider(_id: string): Promise<void> {}
    }
    expect(Typed).toBeDefined();
  });

  test.each<[object, string]>([
    [{}, "name must be a string"],
    [{ name: 7 }, "name must be a string"],
    [{ name: "a", whenBusy: "wait" }, "whenBusy"],
    [{ name: "a", waitMs: -1 }, "waitMs"],
    [{ name: "a", leaseMs: 1 }, "leaseMs"],
    [{ name: "a", lock: "mutex" }, "lock must be a function"],
    [{ name: "a", signal: AbortSignal.abort() }, "signal"],
    [{ name: "a", leaseAt: -1 }, "leaseAt"],
    [{ name: "a", noLease: 1 }, "noLease"],
  ])("with an invalid option, in an error that names it: %o", (options, message) => {
    expect(() => {
      class Wrong {
        @Locked({ ...(options as { name: string }) })
        async close(): Promise<void> {}
      }
      return Wrong;
    }).toThrow(message);
  });

  test("in an application without the module, when the application starts", async () => {
    @Module({ providers: [Invoices] })
    class App {}
    const starting = NestFactory.createApplicationContext(App, { logger: false, abortOnError: false });
    await expect(starting).rejects.toThrow(/Invoices.*Symbol\(holdfast\)/s);
  });

  test("whose method is called without its instance", async () => {
    const { count } = await appWith([Invoices]);
    await expect(count()).rejects.toThrow("count has @Locked or @Scheduled and was called without its instance");
  });

  test("as an instance that Nest did not create", async () => {
    await expect(new Invoices().count()).rejects.toThrow("let Nest create the instance");
  });
});

/** Holdfast in real Nest applications: routes, guards, requests, cron, shutdown. */
import { randomUUID } from "node:crypto";
import { embedded } from "@holdfast/embedded";
import {
  type ArgumentsHost,
  type CanActivate,
  Controller,
  Get,
  HttpCode,
  Inject,
  Injectable,
  Logger,
  Module,
  type ModuleMetadata,
  Param,
  Post,
  Query,
  Res,
  Scope,
  UseGuards,
} from "@nestjs/common";
import { APP_FILTER, ExternalContextCreator, NestFactory, REQUEST } from "@nestjs/core";
import { Cron, ScheduleModule, SchedulerRegistry } from "@nestjs/schedule";
import { Test } from "@nestjs/testing";
import {
  AcquireTimeoutError,
  ClosedError,
  createHoldfast,
  EvictionError,
  type Holdfast,
  type Lease,
  LeaseLostError,
  QuorumError,
  StoreError,
  UnsupportedError,
} from "holdfast";
import { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { type RedisServer, startRedis } from "../../../../tests/support/redis-server.js";
import { deferred } from "../../../holdfast/src/testing/delays.js";
import {
  HeldLease,
  HOLDFAST,
  HoldfastExceptionFilter,
  HoldfastModule,
  InjectHoldfast,
  Locked,
} from "../../src/index.js";

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
  for (const close of closing.splice(0).reverse()) await close();
});

afterAll(async () => {
  await direct?.close();
  redis?.disconnect();
  await server?.stop();
});

/** Starts an application and returns its URL. */
async function listening(metadata: ModuleMetadata): Promise<string> {
  @Module({ ...metadata, imports: [HoldfastModule.forRoot({ redis }), ...(metadata.imports ?? [])] })
  class App {}
  const app = await NestFactory.create(App, { logger: false, abortOnError: false });
  closing.push(() => app.close());
  await app.listen(0, "127.0.0.1");
  return app.getUrl();
}

const APP_WIDE = { provide: APP_FILTER, useClass: HoldfastExceptionFilter };

describe("over HTTP", () => {
  @Injectable()
  class Closed implements CanActivate {
    canActivate(): boolean {
      return false;
    }
  }

  @Injectable({ scope: Scope.REQUEST })
  class PerRequest {
    readonly #url: string;

    constructor(@Inject(REQUEST) request: { url: string }) {
      this.#url = request.url;
    }

    @Locked({ name: (id: string) => `invoice:${id}`, waitMs: 0 })
    async describe(id: string, @HeldLease() lease?: Lease): Promise<object> {
      return { id, url: this.#url, lock: lease?.name };
    }
  }

  @Controller("invoices")
  class Invoices {
    constructor(@Inject(PerRequest) private readonly perRequest: PerRequest) {}

    @Post(":id/above")
    @HttpCode(202)
    @Locked({ name: (id: string) => `invoice:${id}`, waitMs: 0 })
    async above(@Param("id") id: string, @HeldLease() lease: Lease, @Query("note") note: string): Promise<object> {
      return { id, note, lock: lease.name, held: lease.validForMs() > 0 };
    }

    @Locked({ name: (id: string) => `invoice:${id}`, waitMs: 0 })
    @Post(":id/below")
    @HttpCode(202)
    async below(@Param("id") id: string, @Query("note") note: string, @HeldLease() lease?: Lease): Promise<object> {
      return { id, note, lock: lease?.name, held: (lease?.validForMs() ?? 0) > 0 };
    }

    @Locked({ name: "guarded", noLease: true })
    @UseGuards(Closed)
    @Get("guarded")
    async guarded(): Promise<string> {
      return "in";
    }

    @Get(":id/request")
    async request(@Param("id") id: string): Promise<object> {
      return this.perRequest.describe(id);
    }

    @Get(":id/waits")
    @Locked({ name: (id: string) => `invoice:${id}`, waitMs: 20, noLease: true })
    async waits(@Param("id") _id: string): Promise<void> {}

    @Get(":id/lost")
    @Locked({ name: (id: string) => `invoice:${id}`, noLease: true })
    async lost(@Param("id") id: string): Promise<void> {
      const lock = direct.mutex(`invoice:${id}`);
      const { holders } = await lock.inspect();
      await lock.forceRelease({ token: holders[0]?.token as number });
    }
  }

  const metadata = { controllers: [Invoices], providers: [PerRequest, Closed, APP_WIDE] };

  test.each(["above", "below"])(
    "a route decorator %s the lock works, and the route keeps its parameters",
    async (where) => {
      const url = await listening(metadata);
      const response = await fetch(`${url}/invoices/${id}/${where}?note=paid`, { method: "POST" });
      expect(response.status).toBe(202);
      expect(await response.json()).toEqual({ id, note: "paid", lock: `invoice:${id}`, held: true });
    },
  );

  test("a guard below the lock decorator still runs, before the lock is acquired", async () => {
    const url = await listening(metadata);
    const lease = await direct.mutex("guarded").acquire();
    expect((await fetch(`${url}/invoices/guarded`)).status).toBe(403);
    await lease.release();
  });

  test("a request-scoped instance is locked", async () => {
    const url = await listening(metadata);
    const path = `/invoices/${id}/request`;
    const expected = { id, url: path, lock: `invoice:${id}` };
    expect(await (await fetch(url + path)).json()).toEqual(expected);
    const lease = await direct.mutex(`invoice:${id}`).acquire();
    expect((await fetch(url + path)).status).toBe(409);
    await lease.release();
    expect(await (await fetch(url + path)).json()).toEqual(expected);
  });

  test("a request for a held lock gets 409, with no details about the holder", async () => {
    const url = await listening(metadata);
    const lease = await direct.mutex(`invoice:${id}`).acquire({ label: "secret import" });
    const response = await fetch(`${url}/invoices/${id}/above`, { method: "POST" });
    const body = await response.text();
    expect(response.status).toBe(409);
    expect(response.headers.get("retry-after")).toBeNull();
    expect(JSON.parse(body)).toEqual({ statusCode: 409, error: "Conflict", code: "ERR_LOCK_ACQUIRE_TIMEOUT" });
    expect(body).not.toContain("secret");
    await lease.release();
  });

  test("a request that times out or meets a pause gets 503 and `Retry-After`", async () => {
    const url = await listening(metadata);
    const lease = await direct.mutex(`invoice:${id}`).acquire();
    const waited = await fetch(`${url}/invoices/${id}/waits`);
    expect([waited.status, waited.headers.get("retry-after")]).toEqual([503, "1"]);
    await lease.release();

    await direct.pause(`invoice:${id}`, { by: "ana", label: "year-end" });
    const open = await fetch(`${url}/invoices/${id}/above`, { method: "POST" });
    expect([open.status, open.headers.get("retry-after")]).toEqual([503, "60"]);
    expect(await open.json()).toMatchObject({ code: "ERR_LOCK_PAUSED" });
    await direct.resume(`invoice:${id}`, { by: "ana" });

    await direct.pause(`invoice:${id}`, { by: "ana", label: "year-end", untilAtMs: Date.now() + 600_000 });
    const until = await fetch(`${url}/invoices/${id}/above`, { method: "POST" });
    expect(Number(until.headers.get("retry-after"))).toBeGreaterThan(60);
    expect(Number(until.headers.get("retry-after"))).toBeLessThanOrEqual(600);
    await direct.resume(`invoice:${id}`, { by: "ana" });
  });

  test("a lost lease is answered with 500, also by a filter that Nest did not create", async () => {
    @Module({ imports: [HoldfastModule.forRoot({ redis })], controllers: [Invoices], providers: [PerRequest, Closed] })
    class App {}
    const app = await NestFactory.create(App, { logger: false, abortOnError: false });
    closing.push(() => app.close());
    app.useGlobalFilters(new HoldfastExceptionFilter(app.getHttpAdapter()));
    await app.listen(0, "127.0.0.1");
    const url = await app.getUrl();
    expect((await fetch(`${url}/invoices/${id}/lost`)).status).toBe(500);
    const lease = await direct.mutex(`invoice:${id}`).acquire();
    expect((await fetch(`${url}/invoices/${id}/waits`)).headers.get("retry-after")).toBe("1");
    await lease.release();
  });
});

describe("the filter", () => {
  const refused = (): AcquireTimeoutError => new AcquireTimeoutError("a", { waitMs: 0 });
  const store = { mayHaveRun: false, transient: true, cause: new Error("away") };

  test.each<[string, () => Error, number, string | null]>([
    ["a ClosedError", () => new ClosedError("a"), 503, "1"],
    ["a StoreError", () => new StoreError("a", store), 503, "1"],
    ["a StoreError with a retry time", () => new StoreError("a", { ...store, resumesInMs: 4_100 }), 503, "5"],
    ["a QuorumError", () => new QuorumError("a", { ...store, answers: [] }), 503, "1"],
    ["an EvictionError", () => new EvictionError("a", { policy: "allkeys-lru", maxmemoryBytes: 1 }), 500, null],
    ["an UnsupportedError", () => new UnsupportedError("a", "Never."), 500, null],
  ])("answers %s with its status", async (_, make, status, retryAfter) => {
    @Controller()
    class Throwing {
      @Get("throws")
      throws(): never {
        throw make();
      }
    }
    const url = await listening({ controllers: [Throwing], providers: [APP_WIDE] });
    const response = await fetch(`${url}/throws`);
    expect([response.status, response.headers.get("retry-after")]).toEqual([status, retryAfter]);
  });

  test("ends a response that has already begun, and Nest logs the error", async () => {
    @Controller()
    class Streaming {
      @Get("stream")
      stream(@Res() response: { write(text: string): void }): never {
        response.write("the first part");
        throw new ClosedError("a");
      }
    }
    const logged = vi.fn();
    @Module({ imports: [HoldfastModule.forRoot({ redis })], controllers: [Streaming], providers: [APP_WIDE] })
    class App {}
    const logger = { log: () => {}, warn: () => {}, error: logged };
    const app = await NestFactory.create(App, { logger, abortOnError: false });
    closing.push(() => app.close());
    await app.listen(0, "127.0.0.1");
    const response = await fetch(`${await app.getUrl()}/stream`);
    expect(await response.text()).toBe("the first part");
    expect(logged.mock.calls.flat().join("\n")).toContain("This Holdfast was closed");
  });

  test("leaves errors outside HTTP to Nest, which rethrows them unchanged", async () => {
    const thrown = refused();
    @Injectable()
    class Resolver {
      async invoice(): Promise<never> {
        throw thrown;
      }
    }
    @Module({ imports: [HoldfastModule.forRoot({ redis })], providers: [Resolver, APP_WIDE] })
    class App {}
    const app = await NestFactory.createApplicationContext(App, { logger: false, abortOnError: false });
    closing.push(() => app.close());
    const resolver = app.get(Resolver);
    const creator = app.get(ExternalContextCreator, { strict: false });
    const defaults = [undefined, undefined, undefined, undefined, undefined] as const;
    const invoice = creator.create(resolver, resolver.invoice, "invoice", ...defaults, "graphql");
    await expect((invoice as () => Promise<never>)()).rejects.toBe(thrown);
  });

  // An error thrown here crashes the process in some versions of Nest, and is swallowed in others.
  test.each(["rpc", "ws"])("throws nothing for message transports: %s", (type) => {
    const logged = vi.spyOn(Logger.prototype, "error").mockImplementation(() => {});
    const host = { getType: () => type } as unknown as ArgumentsHost;
    expect(new HoldfastExceptionFilter().catch(refused(), host)).toBeUndefined();
    // For `rpc`, Nest builds the reply and logs the error itself.
    const words =
      type === "ws" ? [[expect.stringContaining('"a" was not acquired immediately'), expect.any(String)]] : [];
    expect(logged.mock.calls).toEqual(words);
    logged.mockRestore();
  });
});

test.each<["above" | "below"]>([["above"], ["below"]])("a cron job is locked with @Cron %s @Locked", async (where) => {
  const name = `cron:${id}`;
  const ran: (string | undefined)[] = [];

  @Injectable()
  class Above {
    @Cron("* * * * * *", { name: "above" })
    @Locked({ name, waitMs: 0, whenBusy: "skip" })
    async tick(@HeldLease() lease?: Lease): Promise<unknown> {
      return ran.push(lease?.name);
    }
  }

  @Injectable()
  class Below {
    @Locked({ name, waitMs: 0, whenBusy: "skip" })
    @Cron("* * * * * *", { name: "below" })
    async tick(@HeldLease() lease?: Lease): Promise<unknown> {
      return ran.push(lease?.name);
    }
  }

  @Module({
    imports: [ScheduleModule.forRoot(), HoldfastModule.forRoot({ redis })],
    providers: [where === "above" ? Above : Below],
  })
  class App {}
  const app = await NestFactory.createApplicationContext(App, { logger: false, abortOnError: false });
  closing.push(() => app.close());
  expect([...app.get(SchedulerRegistry).getCronJobs().keys()]).toEqual([where]);
  await vi.waitFor(() => expect(ran[0]).toBe(name), eventually);
});

describe("the module", () => {
  @Injectable()
  class Slow {
    readonly began = deferred<AbortSignal>();
    readonly end = deferred<string>();

    constructor(@InjectHoldfast() readonly holdfast: Holdfast) {}

    @Locked({ name: (id: string) => `slow:${id}` })
    async run(_id: string, @HeldLease() lease?: Lease): Promise<string> {
      this.began.resolve(lease?.signal as AbortSignal);
      return this.end.promise;
    }
  }

  test("takes its options from injected providers, and leaves the client connected", async () => {
    const CLIENT = Symbol("redis");
    const client = new Redis({ port: server.port });

    @Module({ providers: [{ provide: CLIENT, useValue: client }], exports: [CLIENT] })
    class Clients {}

    @Module({
      imports: [
        HoldfastModule.forRootAsync({
          imports: [Clients],
          inject: [CLIENT],
          useFactory: async (given: Redis) => ({ redis: given, prefix: "async" }),
        }),
      ],
      providers: [Slow],
    })
    class App {}
    const app = await NestFactory.createApplicationContext(App, { logger: false, abortOnError: false });
    const slow = app.get(Slow);
    expect(app.get(HOLDFAST)).toBe(slow.holdfast);
    const run = slow.run(id);
    await slow.began.promise;
    expect(await redis.exists(`async:mutex:{slow:${id}}`)).toBe(1);
    slow.end.resolve("done");
    expect(await run).toBe("done");
    await app.close();
    await expect(slow.holdfast.mutex("a").acquire()).rejects.toMatchObject({ name: "ClosedError" });
    expect(client.status).toBe("ready");
    expect(await client.ping()).toBe("PONG");
    client.disconnect();
  });

  test("closes with the application: work is notified and keeps its lock until it ends", async () => {
    @Module({ imports: [HoldfastModule.forRoot({ redis })], providers: [Slow] })
    class App {}
    const app = await NestFactory.createApplicationContext(App, { logger: false, abortOnError: false });
    const slow = app.get(Slow);
    const run = slow.run(id);
    const signal = await slow.began.promise;
    const closed = app.close();
    await vi.waitFor(() => expect(signal.aborted).toBe(true), eventually);
    expect(signal.reason).toBeInstanceOf(LeaseLostError);
    expect(signal.reason).toMatchObject({ reason: "closing" });
    await expect(slow.run(`${id}/2`)).rejects.toMatchObject({ name: "ClosedError" });
    expect((await direct.mutex(`slow:${id}`).inspect()).holders).toHaveLength(1);
    slow.end.resolve("done");
    expect(await run).toBe("done");
    await closed;
    expect((await direct.mutex(`slow:${id}`).inspect()).holders).toEqual([]);
  });

  test("waits at most its grace period, and takes no lock away from running work", async () => {
    @Module({ imports: [HoldfastModule.forRoot({ redis, graceMs: 50 })], providers: [Slow] })
    class App {}
    const app = await NestFactory.createApplicationContext(App, { logger: false, abortOnError: false });
    const slow = app.get(Slow);
    const run = slow.run(id);
    await slow.began.promise;
    await app.close();
    expect((await direct.mutex(`slow:${id}`).inspect()).holders).toHaveLength(1);
    slow.end.resolve("late");
    await run.catch(() => {});
  });

  test("needs no server in a test", async () => {
    const made = await Test.createTestingModule({ imports: [HoldfastModule.forTest()], providers: [Slow] }).compile();
    const slow = made.get(Slow);
    const run = slow.run(id);
    await slow.began.promise;
    expect(await slow.holdfast.mutex(`slow:${id}`).tryAcquire()).toBeNull();
    expect((await direct.mutex(`slow:${id}`).inspect()).holders).toEqual([]);
    slow.end.resolve("done");
    expect(await run).toBe("done");
    await made.close();
  });

  test("can share a store that the test provides", async () => {
    const store = embedded();
    const beside = createHoldfast({ store });
    const imports = [HoldfastModule.forTest({ store })];
    const made = await Test.createTestingModule({ imports, providers: [Slow] }).compile();
    const lease = await beside.mutex(`slow:${id}`).acquire();
    expect(await made.get(Slow).holdfast.mutex(`slow:${id}`).tryAcquire()).toBeNull();
    await lease.release();
    await made.close();
    await beside.close();
  });

  test.each<[object, string]>([
    [{}, "createHoldfast needs exactly one of redis, store and redlock"],
    [{ redis: {}, graceMs: -1 }, "graceMs"],
    [{ redis: {}, leaseMs: 1 }, "leaseMs"],
  ])("refuses wrong options when the application starts: %o", async (options, message) => {
    @Module({ imports: [HoldfastModule.forRoot(options)] })
    class App {}
    const starting = NestFactory.createApplicationContext(App, { logger: false, abortOnError: false });
    await expect(starting).rejects.toThrow(message);
    expect(() => HoldfastModule.forRootAsync({} as never)).toThrow("useFactory");
  });
});

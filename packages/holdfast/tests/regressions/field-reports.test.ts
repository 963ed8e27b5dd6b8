/**
 * Bugs that users reported in other libraries, tried on Holdfast. Each of these tests failed once. CONTRIBUTING.md has
 * the table.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { type AddressInfo, connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { execPath } from "node:process";
import { setTimeout } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { setFlagsFromString } from "node:v8";
import vm from "node:vm";
import { embedded } from "@holdfast/embedded";
import * as recipes from "@holdfast/recipes";
import * as everything from "holdfast";
import {
  type AcquireOptions,
  createHoldfast,
  EvictionError,
  type Holdfast,
  type HoldfastOptions,
  type Lease,
  LeaseLostError,
  LockError,
  type LockOptions,
  ProtocolError,
  StoreError,
} from "holdfast";
import { Cluster, Redis } from "ioredis";
import { Redis as Redis5 } from "ioredis5";
import { createClient, createCluster } from "redis";
import { createClient as createClient4 } from "redis4";
import { rolldown } from "rolldown";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { startCluster } from "../../../../tests/support/redis-cluster.js";
import { startRedis } from "../../../../tests/support/redis-server.js";
import { forbiddenCommand } from "../../src/stores/failure.js";

function local(options: object = {}): Holdfast {
  const holdfast = createHoldfast({ store: embedded(), commandTimeoutMs: 30_000, ...options });
  onTestFinished(async () => void (await holdfast.close()));
  return holdfast;
}

describe("names of errors", () => {
  const classes = Object.entries({ ...everything, ...recipes }).filter(([name]) => name.endsWith("Error"));

  it.each(classes)("%s has a literal name, which a minifier cannot change", (name, Class) => {
    const renamed = class extends (Class as unknown as new (...facts: unknown[]) => Error) {};
    const facts = { reason: "expired", failure: {}, holders: [], answers: [], waitMs: 0 };
    let error: Error | undefined;
    try {
      error = new renamed("lock", facts, facts);
    } catch {
      // Some errors need more facts than these; check their source instead of an instance.
    }
    if (error === undefined) expect(String(Class)).toContain(`name = "${name}"`);
    else expect(error.name).toBe(name);
  });

  it("stay the same in a bundled and minified program", async () => {
    const folder = mkdtempSync(join(tmpdir(), "holdfast-minified-"));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const library = fileURLToPath(new URL("../../dist/index.js", import.meta.url));
    const store = fileURLToPath(new URL("../../../embedded/dist/index.js", import.meta.url));
    writeFileSync(
      join(folder, "program.mjs"),
      `import { createHoldfast } from ${JSON.stringify(library)};
       import { embedded } from ${JSON.stringify(store)};
       const holdfast = createHoldfast({ store: embedded() });
       await holdfast.mutex("a").acquire();
       const error = await holdfast.mutex("a").acquire({ waitMs: 1 }).catch((reason) => reason);
       console.log(error.name, error.code, error.constructor.name);
       await holdfast.close();`,
    );
    const bundle = await rolldown({ input: join(folder, "program.mjs"), platform: "node", external: [store] });
    await bundle.write({ file: join(folder, "bundle.mjs"), minify: true, codeSplitting: false });
    const [name, code, className] = execFileSync(execPath, [join(folder, "bundle.mjs")], { encoding: "utf8" })
      .trim()
      .split(" ");
    expect([name, code]).toEqual(["AcquireTimeoutError", "ERR_LOCK_ACQUIRE_TIMEOUT"]);
    expect(className, "the bundle was not minified").not.toBe("AcquireTimeoutError");
  });

  it("no class takes its name from new.target", () => {
    for (const Class of [LockError, EvictionError, ProtocolError, StoreError, LeaseLostError])
      expect(String(Class)).not.toContain("new.target");
  });
});

describe("an abort signal", () => {
  it("shared by many acquires has one listener, and none after they end", async () => {
    const holdfast = local();
    const held = await holdfast.mutex("a").acquire();
    const { signal } = new AbortController();
    let listeners = 0;
    const [add, remove] = [signal.addEventListener.bind(signal), signal.removeEventListener.bind(signal)];
    signal.addEventListener = (...args: Parameters<typeof add>) => {
      listeners += 1;
      add(...args);
    };
    signal.removeEventListener = (...args: Parameters<typeof remove>) => {
      listeners -= 1;
      remove(...args);
    };
    const waits = Array.from({ length: 20 }, () => holdfast.mutex("a").acquire({ signal, fairness: "strict" }));
    expect(listeners).toBe(1);
    await held.release();
    for (const wait of waits) await (await wait).release();
    expect(listeners).toBe(0);
  });

  it("shared by many acquires aborts all of them", async () => {
    const holdfast = local();
    await holdfast.mutex("a").acquire();
    const controller = new AbortController();
    const waits = Array.from({ length: 20 }, () => holdfast.mutex("a").acquire({ signal: controller.signal }));
    controller.abort("enough");
    for (const wait of waits) await expect(wait).rejects.toBe("enough");
  });

  it("from another realm is accepted and aborts the wait", async () => {
    const holdfast = local();
    await holdfast.mutex("a").acquire();
    const realm = vm.createContext({ EventTarget, Event });
    const foreign = vm.runInContext(
      "class Signal extends EventTarget { aborted = false; reason; abort(reason) { this.aborted = true; this.reason = reason; this.dispatchEvent(new Event('abort')); } }; new Signal()",
      realm,
    ) as AbortSignal & { abort(reason: unknown): void };
    const wait = holdfast.mutex("a").acquire({ signal: foreign });
    foreign.abort("from elsewhere");
    await expect(wait).rejects.toBe("from elsewhere");
    await expect(holdfast.mutex("a").acquire({ signal: foreign })).rejects.toBe("from elsewhere");
  });

  it.each([{}, { aborted: false }, 1, null])("is rejected if it is %j", async (signal) => {
    const wait = local()
      .mutex("a")
      .acquire({ signal: signal as unknown as AbortSignal });
    await expect(wait).rejects.toThrow("signal must be an AbortSignal");
  });
});

describe("the error explains the mistake and the fix", () => {
  it("when a lease is extended after its own release", async () => {
    const lease = await local().mutex("a").acquire();
    await lease.release();
    await expect(lease.extend(1_000)).rejects.toThrow("it was released with release()");
  });

  it("when a client or a store is passed instead of options", async () => {
    const redis = new Redis({ lazyConnect: true });
    expect(() => createHoldfast(redis as never)).toThrow("but got a client: write createHoldfast({ redis: … })");
    expect(() => createHoldfast(createClient() as never)).toThrow("createHoldfast({ redis: … })");
    expect(() => createHoldfast(embedded() as never)).toThrow("createHoldfast({ store: … })");
    redis.disconnect();
  });

  it("when an option is misspelled", async () => {
    const holdfast = local();
    await expect(holdfast.mutex("a").acquire({ leasMs: 1_000 } as never)).rejects.toThrow("did you mean leaseMs?");
    await expect(holdfast.mutex("a").acquire({ ttl: 1_000 } as never)).rejects.not.toThrow("did you mean");
    expect(() => createHoldfast({ store: embedded(), prefx: "a" } as never)).toThrow("did you mean prefix?");
    expect(() => holdfast.mutex("a", { recheckms: 10 } as never)).toThrow("did you mean recheckMs?");
  });

  it("when the name is empty", () => {
    expect(() => local().mutex("")).toThrow("got an empty string");
  });

  it("when a quorum has two servers", () => {
    const redlock = [embedded(), embedded()];
    expect(() => createHoldfast({ redlock })).toThrow("with fewer than 3, no majority is left when one fails; got 2");
  });

  it("when a node-redis client was never connected", async () => {
    const holdfast = createHoldfast({ redis: createClient() });
    await expect(holdfast.mutex("a").acquire({ waitMs: 0 })).rejects.toThrow(
      "Call `await client.connect()` before the first lock",
    );
  });
});

describe("a client that cannot run scripts is rejected at creation", () => {
  it("node-redis in legacy mode", () => {
    const redis = createClient4({ legacyMode: true });
    expect(() => createHoldfast({ redis })).toThrow("create it without `legacyMode`");
  });

  it("ioredis in monitor mode or subscriber mode", async () => {
    const server = await startRedis();
    onTestFinished(() => server.stop());
    const redis = new Redis(server.port);
    const monitor = await redis.monitor();
    expect(() => createHoldfast({ redis: monitor })).toThrow("on which you called `monitor()`");
    const subscriber = new Redis5(server.port);
    await subscriber.subscribe("a");
    expect(() => createHoldfast({ redis: subscriber })).toThrow("client.duplicate()");
    for (const client of [monitor, subscriber, redis]) client.disconnect();
  });

  it("ioredis-mock", () => {
    class RedisMock {
      defineCommand(): void {}
      evalsha(): void {}
      duplicate(): void {}
    }
    expect(() => createHoldfast({ redis: new RedisMock() })).toThrow("@holdfast/embedded");
  });
});

/** Connections whose CLIENT LIST line matches `filter`, each as the index of its server and its id there. */
async function connections(viewers: readonly Redis[], filter = /./): Promise<string[]> {
  const lists = await Promise.all(viewers.map(async (viewer) => String(await viewer.client("LIST"))));
  return lists.flatMap((list, server) =>
    list
      .split("\n")
      .filter((line) => filter.test(line))
      .map((line) => `${server} ${line.split(" ")[0]}`),
  );
}

it.each(["ioredis", "node-redis"])("Holdfasts on one client of %s share its subscriber connection", async (library) => {
  const server = await startRedis();
  onTestFinished(() => server.stop());
  const viewer = new Redis(server.port);
  const redis = library === "ioredis" ? new Redis(server.port) : createClient({ url: server.url });
  if (!(redis instanceof Redis)) await redis.connect();
  onTestFinished(() => {
    viewer.disconnect();
    if (redis instanceof Redis) redis.disconnect();
    else redis.destroy();
  });
  const holder = createHoldfast({ redis });
  const lease = await holder.mutex("a").acquire();
  const others = Array.from({ length: 5 }, () => createHoldfast({ redis }));
  createHoldfast({ redis }); // Never used and never closed, so it must not keep a connection open.
  const waits = others.map((holdfast) => holdfast.mutex("a").acquire({ waitMs: 60_000 }));
  await expect.poll(async () => (await holder.mutex("a").inspect()).waiterCount, { timeout: 30_000 }).toBe(5);
  const subscribers = await connections([viewer], / sub=[1-9]/);
  expect(subscribers).toHaveLength(1);
  const [first, ...rest] = others;
  await Promise.all([first?.close(), waits[0]?.catch(() => {})]);
  await lease.release();
  // The waiters may be queued in any order.
  await Promise.all(waits.slice(1).map(async (wait) => (await wait).release()));
  await Promise.all([...rest, holder].map((holdfast) => holdfast.close()));
  await expect.poll(() => connections([viewer]), { timeout: 30_000 }).not.toContain(subscribers[0]);
});

it.each(["ioredis", "node-redis"])(
  "Holdfasts on one cluster client of %s share its subscriber connections",
  async (library) => {
    const cluster = await startCluster({ nodeTimeoutMs: 15_000 });
    onTestFinished(() => cluster.stop());
    const [port = 0] = cluster.ports;
    const redis =
      library === "ioredis"
        ? new Cluster([{ host: "127.0.0.1", port }])
        : createCluster({ rootNodes: [{ url: `redis://127.0.0.1:${port}` }] });
    if (!(redis instanceof Cluster)) await redis.connect();
    onTestFinished(() => (redis instanceof Cluster ? redis.disconnect() : redis.destroy()));
    const viewers = cluster.ports.map((each) => new Redis(each));
    onTestFinished(() => {
      for (const viewer of viewers) viewer.disconnect();
    });
    const holder = createHoldfast({ redis });
    const lease = await holder.mutex("a").acquire();
    const others = Array.from({ length: 5 }, () => createHoldfast({ redis }));
    createHoldfast({ redis }); // Never used and never closed, so it must not keep a connection open.
    const waits = others.map((holdfast) => holdfast.mutex("a").acquire({ waitMs: 60_000 }));
    await expect.poll(async () => (await holder.mutex("a").inspect()).waiterCount, { timeout: 30_000 }).toBe(5);
    // One for plain channels and one for the sharded channels of the slot.
    const subscribers = await connections(viewers, / sub=[1-9]| ssub=[1-9]/);
    expect(subscribers).toHaveLength(2);
    const [first, ...rest] = others;
    await Promise.all([first?.close(), waits[0]?.catch(() => {})]);
    await lease.release();
    // The waiters may be queued in any order.
    await Promise.all(waits.slice(1).map(async (wait) => (await wait).release()));
    await Promise.all([...rest, holder].map((holdfast) => holdfast.close()));
    const left = async (): Promise<string[]> =>
      (await connections(viewers)).filter((connection) => subscribers.includes(connection));
    await expect.poll(left, { timeout: 30_000 }).toEqual([]);
  },
  150_000,
);

it("the error of an unreachable server contains its address and the client's error", async () => {
  const server = await startRedis();
  await server.stop();
  const redis = new Redis(server.port);
  redis.on("error", () => {});
  const other = createClient({ socket: { port: server.port, host: "127.0.0.1" } });
  other.on("error", () => {});
  other.connect().catch(() => {});
  const cluster = new Cluster([{ host: "127.0.0.1", port: server.port }]);
  cluster.on("error", () => {});
  onTestFinished(() => {
    redis.disconnect();
    other.destroy();
    cluster.disconnect();
  });
  const failure = (client: object): Promise<unknown> =>
    createHoldfast({ redis: client, commandTimeoutMs: 300 })
      .mutex("a")
      .acquire({ waitMs: 0 })
      .catch((reason: unknown) => String(reason));
  expect(await failure(redis)).toMatch(/no connection to localhost:\d+ \(connect ECONNREFUSED/);
  expect(await failure(other)).toContain(`no connection to 127.0.0.1:${server.port}`);
  // The cluster client does not report the cause.
  const named = `no connection to any server of the cluster (127.0.0.1:${server.port}: `;
  expect(await failure(cluster)).toContain(named);
  // Another Holdfast on the same client reports it too.
  expect(await failure(cluster)).toContain(named);
});

describe("the error says that the client class is wrong", () => {
  it("for a cluster client on a server without a cluster", async () => {
    const server = await startRedis();
    onTestFinished(() => server.stop());
    const redis = new Cluster([{ host: "127.0.0.1", port: server.port }], { clusterRetryStrategy: () => null });
    redis.on("error", () => {});
    onTestFinished(() => redis.disconnect());
    const error: unknown = await createHoldfast({ redis })
      .mutex("a")
      .acquire({ waitMs: 0 })
      .catch((reason: unknown) => reason);
    expect(String(error)).toContain("use a client without cluster mode if the server is not in a cluster");
  });

  it("for a plain client on a cluster node", async () => {
    const cluster = await startCluster();
    onTestFinished(() => cluster.stop());
    const redis = new Redis(cluster.ports[0] ?? 0);
    onTestFinished(() => redis.disconnect());
    const holdfast = createHoldfast({ redis, failoverGrace: "off", allowEviction: true });
    const errors = await Promise.all(
      Array.from({ length: 20 }, (_, index) => holdfast.mutex(`a${index}`).acquire({ waitMs: 0 }).then(String, String)),
    );
    expect(errors.join("\n")).toContain("create a cluster client, such as");
  });
});

it("the error says that the client has an open MULTI", async () => {
  const server = await startRedis();
  onTestFinished(() => server.stop());
  const redis = new Redis(server.port);
  onTestFinished(() => redis.disconnect());
  const holdfast = createHoldfast({ redis });
  await (await holdfast.mutex("a").acquire()).release();
  redis.multi({ pipeline: false }).catch(() => {});
  const error: unknown = await holdfast
    .mutex("b")
    .acquire({ waitMs: 0 })
    .catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(StoreError);
  expect((error as Error).message).toContain("inside MULTI");
});

describe("the stack of a timeout error shows its caller", () => {
  const BRIEF = { waitMs: 10 };
  const waits: Readonly<Record<string, (holdfast: Holdfast) => Promise<unknown>>> = {
    mutex: (holdfast) => holdfast.mutex("a").acquire(BRIEF),
    "mutex, strict": (holdfast) => holdfast.mutex("a").acquire({ ...BRIEF, fairness: "strict" }),
    "mutex, through run": (holdfast) => holdfast.mutex("a").run(() => {}, BRIEF),
    "reentrant mutex": (holdfast) => holdfast.reentrantMutex("a").run(() => {}, BRIEF),
    semaphore: (holdfast) => holdfast.semaphore("a", { permits: 1 }).acquire(BRIEF),
    "read-write lock": (holdfast) => holdfast.readWriteLock("a").read.acquire(BRIEF),
    "multi-lock": (holdfast) => holdfast.multiLock(["a", "b"]).acquire(BRIEF),
    election: (holdfast) => holdfast.election("a").campaign("me", BRIEF),
    latch: (holdfast) => holdfast.countDownLatch("a").await(BRIEF),
    barrier: (holdfast) => holdfast.barrier("a", { parties: 2 }).arrive(BRIEF),
    condition: async (holdfast) =>
      holdfast
        .mutex("c")
        .condition("x")
        .wait(await holdfast.mutex("c").acquire(), BRIEF),
  };

  it.each(Object.entries(waits))("%s", async (_, wait) => {
    const holdfast = local();
    await holdfast.mutex("a").acquire();
    await holdfast.semaphore("a", { permits: 1 }).acquire();
    await holdfast.readWriteLock("a").write.acquire();
    await holdfast.election("a").campaign("other");
    await holdfast.countDownLatch("a").trySetCount(1);
    async function theCallerOfTheLock(): Promise<void> {
      await wait(holdfast);
    }
    const error: unknown = await theCallerOfTheLock().catch((reason: unknown) => reason);
    expect((error as { code?: string }).code).toMatch(/^ERR_LOCK_(ACQUIRE|WAIT)_TIMEOUT$/);
    expect((error as Error).stack).toContain("theCallerOfTheLock");
  });
});

describe("a flush of the whole database while a lease is held", () => {
  async function flushed(): Promise<{ one: Holdfast; two: Holdfast; flush(): Promise<unknown> }> {
    const server = await startRedis();
    onTestFinished(() => server.stop());
    const clients = [new Redis(server.port), new Redis(server.port)] as const;
    onTestFinished(() => {
      for (const client of clients) client.disconnect();
    });
    const [one, two] = [createHoldfast({ redis: clients[0] }), createHoldfast({ redis: clients[1] })];
    return { one, two, flush: () => clients[0].flushall() };
  }

  it("does not end the lease if no other client was granted: the holder restores it", async () => {
    const { one, two, flush } = await flushed();
    const lease = await one.mutex("a").acquire({ leaseMs: 6_000 });
    await flush();
    await expect
      .poll(async () => (await two.mutex("a").inspect()).holders[0]?.owner, { timeout: 30_000 })
      .toBe(lease.owner);
    expect(await two.mutex("a").tryAcquire()).toBe(null);
    expect(await lease.release()).toBe("released");
  });

  it("is noticed by the holder if another client was granted meanwhile", async () => {
    const { one, two, flush } = await flushed();
    const lease = await one.mutex("a").acquire({ leaseMs: 6_000 });
    await flush();
    const other = await two.mutex("a").acquire();
    await new Promise((resolve) => lease.signal.addEventListener("abort", resolve));
    expect(lease.signal.reason).toBeInstanceOf(LeaseLostError);
    expect(other.validForMs()).toBeGreaterThan(0);
    await other.release();
  });
});

type Optional<T> = { [Key in keyof T]-?: object extends Pick<T, Key> ? Key : never }[keyof T];
/** `true` if every optional property accepts undefined under exactOptionalPropertyTypes, which this repository sets. */
type TakesUndefined<T> = Record<Optional<T>, undefined> extends Pick<T, Optional<T>> ? true : false;

it("options set to undefined count as absent, in the types as well", async () => {
  const all: readonly true[] = [
    true satisfies TakesUndefined<AcquireOptions>,
    true satisfies TakesUndefined<HoldfastOptions>,
    true satisfies TakesUndefined<LockOptions>,
    true satisfies TakesUndefined<recipes.OnceOptions<unknown>>,
    true satisfies TakesUndefined<recipes.LeadOptions>,
    true satisfies TakesUndefined<recipes.ScheduledOptions>,
    true satisfies TakesUndefined<recipes.CacheOptions<unknown>>,
    true satisfies TakesUndefined<recipes.CoalesceOptions>,
    true satisfies TakesUndefined<recipes.CounterOptions>,
    true satisfies TakesUndefined<recipes.KeyedOptions>,
  ];
  expect(all).not.toContain(false);
  const maybe: { signal: AbortSignal | undefined; leaseMs: number | undefined } = {
    signal: undefined,
    leaseMs: undefined,
  };
  await (await local().mutex("a").acquire(maybe)).release();
  await local().countDownLatch("l").countDown(1, { callerId: undefined });
  await local().election("e").observe({ signal: undefined }).return();
  await recipes.versioned(local(), "v").watch({ signal: undefined }).return();
});

describe("the async context of a request", () => {
  const context = new AsyncLocalStorage<object>();
  const [first, second] = [{ of: "first" }, { of: "second" }];

  /** Makes the first request create the subscriber connection and the shared timers. */
  async function contended(holdfast: Holdfast): Promise<void> {
    const held = await holdfast.mutex("shared").acquire();
    const waiting = holdfast.mutex("shared").acquire({ fairness: "strict" });
    await setTimeout(50);
    await held.release();
    await (await waiting).release();
  }

  async function seenByAbort(lease: Lease, end: () => Promise<unknown>): Promise<unknown> {
    const seen = new Promise((resolve) =>
      lease.signal.addEventListener("abort", () => resolve(context.getStore() ?? "none")),
    );
    await end();
    return seen;
  }

  it("does not leak into the abort handler of another request's lease", async () => {
    const server = await startRedis();
    onTestFinished(() => server.stop());
    const redis = new Redis({ port: server.port });
    onTestFinished(() => redis.disconnect());
    await redis.ping();
    const holdfast = createHoldfast({ redis });
    onTestFinished(async () => void (await holdfast.close()));
    await context.run(first, () => contended(holdfast));
    const ended = await context.run(second, () => holdfast.mutex("b").acquire({ leaseMs: 500, renew: false }));
    expect(await seenByAbort(ended, async () => {})).not.toBe(first);
    const forced = await context.run(second, () => holdfast.mutex("c").acquire({ leaseMs: 60_000 }));
    const end = (): Promise<unknown> => holdfast.mutex("c").forceRelease({ owner: forced.owner, reason: "test" });
    expect(await seenByAbort(forced, end)).not.toBe(first);
  });

  it("is not kept in memory by connections and timers after the request ends", async () => {
    const server = await startRedis();
    onTestFinished(() => server.stop());
    const redis = new Redis({ port: server.port });
    onTestFinished(() => redis.disconnect());
    await redis.ping();
    const holdfast = createHoldfast({ redis });
    onTestFinished(async () => void (await holdfast.close()));
    const request = async (): Promise<WeakRef<object>> => {
      const own = { of: "a request that is over" };
      await context.run(own, () => contended(holdfast));
      return new WeakRef(own);
    };
    const own = await request();
    setFlagsFromString("--expose-gc");
    const collect = vm.runInNewContext("gc") as () => void;
    for (let tries = 0; tries < 100 && own.deref() !== undefined; tries += 1) {
      await setTimeout(50);
      collect();
    }
    expect(own.deref()).toBeUndefined();
  });
});

describe("a server that forbids a command in scripts that Holdfast needs", () => {
  it("is reported by the first acquire, with the name of a renamed command", async () => {
    const server = await startRedis({ args: ["--rename-command", "TIME", ""] });
    onTestFinished(() => server.stop());
    const redis = new Redis({ port: server.port });
    onTestFinished(() => redis.disconnect());
    const holdfast = createHoldfast({ redis });
    onTestFinished(async () => void (await holdfast.close()));
    const error = await holdfast
      .mutex("a")
      .acquire({ waitMs: 0 })
      .catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(StoreError);
    expect(String(error)).toMatch(/Holdfast needs TIME in scripts, and this server does not allow it/);
  });

  it("is reported with the name of the command if a managed service words the error differently", () => {
    const source = "-- holdfast test/one\nlocal time = redis.call('TIME')\nredis.call('PUBSUB', 'NUMSUB', ARGV[1])";
    const refused = (line: number): Error =>
      new Error(
        `ERR This Redis command is not allowed from script script: ${"a".repeat(40)}, on @user_script:${line}.`,
      );
    expect(forbiddenCommand(refused(2), source)).toBe("TIME");
    expect(forbiddenCommand(refused(3), source)).toBe("PUBSUB NUMSUB");
    expect(forbiddenCommand(new Error("NOPERM no permissions to run the 'time' command"), source)).toBe(undefined);
  });
});

it("waiters do not reconnect in a tight loop through a proxy that resets connections", async () => {
  const server = await startRedis();
  onTestFinished(() => server.stop());
  let connections = 0;
  let isBroken = false;
  // Handshake commands pass, so the client considers the connection healthy and reconnects without a delay.
  const proxy = createServer((client) => {
    connections += 1;
    const upstream = connect(server.port, "127.0.0.1");
    for (const [one, other] of [[client, upstream] as const, [upstream, client] as const]) {
      one.on("error", () => {}).on("close", () => other.destroy());
    }
    upstream.on("data", (data) => client.write(data));
    client.on("data", (data) => {
      if (isBroken && !/info|hello/i.test(data.toString())) client.resetAndDestroy();
      else upstream.write(data);
    });
  }).listen(0, "127.0.0.1");
  onTestFinished(() => void proxy.close());
  await once(proxy, "listening");
  const client = createClient({ url: `redis://127.0.0.1:${(proxy.address() as AddressInfo).port}` });
  client.on("error", () => {});
  await client.connect();
  onTestFinished(() => client.destroy());
  const other = new Redis({ port: server.port });
  onTestFinished(() => other.disconnect());
  const [holdfast, others] = [createHoldfast({ redis: client }), createHoldfast({ redis: other })];
  const names = ["a", "b", "c", "d", "e"];
  for (const name of names) await others.mutex(name).acquire();
  await holdfast.mutex("held").acquire();
  const waiting = Promise.allSettled(names.map((name) => holdfast.mutex(name).acquire({ waitMs: Infinity })));
  isBroken = true;
  connections = 0;
  await setTimeout(3_000);
  isBroken = false;
  // Each waiter asks every 0.25 s at most. Before the fix, there were 600 connections per second.
  expect(connections).toBeLessThan(200);
  await Promise.all([holdfast.close(), others.close()]);
  await waiting;
});

describe("two copies of the library on one store", () => {
  it("keep it open until the last Holdfast of either copy is closed", async () => {
    vi.resetModules();
    const copy = await import("../../src/index.js");
    expect(copy.createHoldfast).not.toBe(createHoldfast);
    const store = embedded();
    const mine = createHoldfast({ store });
    const other = copy.createHoldfast({ store });
    const lease = await mine.mutex("a").acquire();
    await other.close();
    await lease.release();
    await (await mine.mutex("a").acquire()).release();
    await mine.close();
  });
});

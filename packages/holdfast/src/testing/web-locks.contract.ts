/**
 * The contract suite for `holdfast/web-locks`, which every store must pass. It follows the W3C specification of Web
 * Locks clause by clause. The clauses about documents, workers and storage buckets do not apply.
 */
import { expect, test } from "vitest";
import { ClosedError, type Lease, LeaseLostError, PausedError, type ReadWriteLock } from "../index.js";
import { lockManager, type WebLock, type WebLockManager, type WebLockOptions } from "../web-locks/index.js";
import { BRIEF_LEASE_MS, sleep, until } from "./delays.js";
import { type Scene, type StoreUnderTest, useScene } from "./subject.js";

const REMAINS = /(:fence|:holders|:read-write-lock:\{.*\})$/s;

/** Loss reasons after a forced release: `server-lost` if the message did not arrive and a renewal finds the loss. */
const BY_FORCE = /^(?:force-released|server-lost)$/;

/** A request whose callback runs until `release` is called. */
interface Running {
  /** What `request` returned. */
  readonly released: Promise<unknown>;
  readonly lock: WebLock;
  readonly lease: Lease;
  /** Lets the callback end with this value. */
  release(value?: unknown): void;
}

/** The parts that both suites need. */
interface WebScene {
  readonly scene: Scene;
  readonly first: () => WebLockManager;
  readonly second: () => WebLockManager;
  /** The same lock, as a read-write lock. */
  readonly lock: () => ReadWriteLock;
  readonly queued: (count: number) => Promise<void>;
  /** Requests the lock of the test and resolves when its callback runs. */
  readonly running: (locks: WebLockManager, options?: WebLockOptions) => Promise<Running>;
}

function useWebScene(subject: StoreUnderTest): WebScene {
  const scene = useScene(subject, (holdfast, name) => holdfast.readWriteLock(name).write, { remains: REMAINS });
  const lock = (): ReadWriteLock => scene.holdfast.readWriteLock(scene.name);
  return {
    scene,
    lock,
    first: () => lockManager(scene.holdfast),
    second: () => lockManager(scene.rivalHoldfast),
    queued: (count) => until(async () => (await lock().read.inspect()).waiterCount === count, `${count} in the queue`),
    running: (locks, options = {}) =>
      new Promise((resolve, reject) => {
        const released: Promise<unknown> = locks.request(scene.name, options, (granted, lease) => {
          if (granted === null || lease === null) throw new Error("the lock was not available");
          return new Promise((release) => resolve({ released, lock: granted, lease, release }));
        });
        released.catch(reject);
      }),
  };
}

/** Calls `request` with arguments that its types do not allow. */
function requestWith(locks: WebLockManager, ...args: readonly unknown[]): Promise<unknown> {
  return (locks.request as (...any: readonly unknown[]) => Promise<unknown>)(...args);
}

const unreached = (): never => {
  throw new Error("the callback was called");
};

/** Registers the tests. Call it inside a `describe` that names the store. */
export function webLocksContract(subject: StoreUnderTest): void {
  const { scene, first, second, lock, queued, running } = useWebScene(subject);

  // --- The arguments of request().

  test("request: rejects with a TypeError if the name or a callable callback is missing", async () => {
    for (const args of [[], [scene.name], [scene.name, {}], [scene.name, null], [scene.name, {}, 12]]) {
      await expect(requestWith(first(), ...args)).rejects.toThrow(TypeError);
    }
    await expect(requestWith(first(), Symbol("name"), unreached)).rejects.toThrow(TypeError);
    await expect(requestWith(first(), scene.name, unreached, undefined)).rejects.toThrow(TypeError);
  });

  test("request: rejects with a TypeError for options that cannot be converted", async () => {
    const wrong = [1, "shared", true, { mode: "both" }, { mode: null }, { mode: 1 }, { mode: Symbol("shared") }];
    const signals = [null, "signal", 1, {}, () => {}].map((signal) => ({ signal }));
    for (const options of [...wrong, ...signals]) {
      await expect(requestWith(first(), scene.name, options, unreached)).rejects.toThrow(TypeError);
    }
  });

  test("request: converts its arguments as Web IDL does", async () => {
    const number = Math.random();
    expect(await requestWith(first(), number, (granted: WebLock) => granted.name)).toBe(String(number));
    for (const options of [undefined, null, {}, { mode: undefined, signal: undefined, steal: 0, other: 1 }]) {
      expect(await requestWith(first(), scene.name, options, ({ mode }: WebLock) => mode)).toBe("exclusive");
    }
    expect(await requestWith(first(), scene.name, { ifAvailable: 1 }, (granted: unknown) => granted)).not.toBeNull();
    const read: string[] = [];
    const note = <Value>(what: string, value: Value): Value => {
      read.push(what);
      return value;
    };
    const options = {
      get steal() {
        return note("steal", false);
      },
      get signal() {
        return note("signal", undefined);
      },
      get mode() {
        return note("mode", { toString: () => note("mode to a string", "shared") });
      },
      get ifAvailable() {
        return note("ifAvailable", false);
      },
    };
    expect(await requestWith(first(), scene.name, options, ({ mode }: WebLock) => mode)).toBe("shared");
    expect(read).toEqual(["ifAvailable", "mode", "mode to a string", "signal", "steal"]);
    expect([first().request.length, first().query.length, String(first())]).toEqual([2, 0, "[object LockManager]"]);
  });

  test("request: rejects with NotSupportedError for a name that begins with a hyphen", async () => {
    for (const name of ["-", "-name"]) {
      await expect(first().request(name, unreached)).rejects.toMatchObject({ name: "NotSupportedError" });
    }
  });

  test("request: rejects with NotSupportedError for options that exclude each other", async () => {
    const { signal } = new AbortController();
    const excluded: readonly WebLockOptions[] = [
      { steal: true, ifAvailable: true },
      { steal: true, mode: "shared" },
      { signal, steal: true },
      { signal, ifAvailable: true },
    ];
    for (const options of excluded) {
      const rejected = await first()
        .request(scene.name, options, unreached)
        .catch((error: unknown) => error);
      expect(rejected).toBeInstanceOf(DOMException);
      expect(rejected).toMatchObject({ name: "NotSupportedError" });
    }
    expect(await lock().write.inspect()).toMatchObject({ holders: [], waiterCount: 0 });
  });

  test("request: rejects with the reason of an aborted signal, after all other checks", async () => {
    const rejected = first().request(scene.name, { signal: AbortSignal.abort() }, unreached);
    await expect(rejected).rejects.toMatchObject({ name: "AbortError" });
    const signal = AbortSignal.abort("my reason");
    await expect(first().request(scene.name, { signal }, unreached)).rejects.toBe("my reason");
    const both = first().request(scene.name, { signal, steal: true }, unreached);
    await expect(both).rejects.toMatchObject({ name: "NotSupportedError" });
  });

  test("request: any other string is a name, and different names are different locks", async () => {
    const names = ["", "a\u0000b", "\uD800", "\uDC00", "\uFFFD", "\uDC00\uD800", "\uFFFF", "\\ud800", "{a}", "}", "%"];
    const granted: string[] = [];
    const request = async (rest: readonly string[]): Promise<void> => {
      const [name, ...others] = rest;
      if (name === undefined) return;
      await first().request(name, async (given) => {
        granted.push(given?.name ?? "none");
        await request(others);
      });
    };
    await request(names);
    expect(granted).toEqual(names);
    await expect(first().request("x".repeat(513), unreached)).rejects.toThrow(RangeError);
  });

  // --- The lock and the callback.

  test("a lock has the name and the mode of its request, and the lease behind it has a token and a signal", async () => {
    const tokens: number[] = [];
    for (const mode of ["exclusive", "shared"] as const) {
      await first().request(scene.name, { mode }, (granted, lease) => {
        expect(granted).toMatchObject({ name: scene.name, mode });
        expect(lease?.signal.aborted).toBe(false);
        tokens.push(lease?.token ?? 0);
      });
    }
    expect(tokens[1]).toBeGreaterThan(tokens[0] ?? Infinity);
  });

  test("request resolves with the callback's result once the lock is released", async () => {
    const promise = first().request(scene.name, () => "result");
    expect(Promise.resolve(promise)).toBe(promise);
    expect(await promise).toBe("result");
    const { released, release } = await running(first());
    release("late");
    expect(await released).toBe("late");
    expect(await second().request(scene.name, { ifAvailable: true }, (granted) => granted?.mode)).toBe("exclusive");
  });

  test("request rejects with what the callback throws, once the lock is released", async () => {
    const reason = { own: "reason" };
    const thrown = first().request(scene.name, () => {
      throw reason;
    });
    await expect(thrown).rejects.toBe(reason);
    await expect(first().request(scene.name, () => Promise.reject(reason))).rejects.toBe(reason);
    expect(await second().request(scene.name, { ifAvailable: true }, (granted) => granted?.mode)).toBe("exclusive");
  });

  // --- When a request can be granted.

  test("an exclusive lock excludes every other lock with its name, in every process", async () => {
    const held = await running(first());
    for (const mode of ["exclusive", "shared"] as const) {
      expect(await second().request(scene.name, { mode, ifAvailable: true }, (granted) => granted)).toBeNull();
    }
    held.release();
    await held.released;
  });

  test("shared locks are held together, and exclude an exclusive one", async () => {
    const held = [await running(first(), { mode: "shared" }), await running(second(), { mode: "shared" })];
    expect(await first().request(scene.name, { ifAvailable: true }, (granted) => granted)).toBeNull();
    for (const one of held) one.release();
    await Promise.all(held.map(({ released }) => released));
  });

  test("a request for another name does not wait, and a second one for the same name waits", async () => {
    await first().request(scene.name, async () => {
      expect(await first().request(`${scene.name}:other`, () => "granted")).toBe("granted");
      expect(await first().request(scene.name, { ifAvailable: true }, (granted) => granted)).toBeNull();
    });
  });

  test("requests of one process are granted in the order of their calls", async () => {
    const begun: string[] = [];
    const modes = ["exclusive", "shared", "exclusive", "exclusive", "shared", "shared", "exclusive"] as const;
    await Promise.all(modes.map((mode, i) => first().request(scene.name, { mode }, () => begun.push(`${mode} ${i}`))));
    // Consecutive shared requests may begin in any order.
    const inOrder = modes.map((mode, i) => `${mode} ${i}`);
    expect([...begun.slice(0, 4), ...begun.slice(4, 6).toSorted(), ...begun.slice(6)]).toEqual(inOrder);
  });

  test("requests of several processes are granted first come, first served, and shared ones together", async () => {
    const held = await running(first());
    const begun: string[] = [];
    const requests: Promise<unknown>[] = [];
    const pending = async (locks: WebLockManager, mode: "exclusive" | "shared"): Promise<void> => {
      const label = `${mode} ${requests.length}`;
      requests.push(locks.request(scene.name, { mode }, () => begun.push(label)));
      await queued(requests.length);
    };
    await pending(second(), "shared");
    await pending(first(), "shared");
    await pending(second(), "exclusive");
    await pending(first(), "shared");
    expect(await second().request(scene.name, { mode: "shared", ifAvailable: true }, (granted) => granted)).toBeNull();
    held.release();
    await Promise.all(requests);
    expect(begun.slice(0, 2).toSorted()).toEqual(["shared 0", "shared 1"]);
    expect(begun.slice(2)).toEqual(["exclusive 2", "shared 3"]);
  });

  test("a shared request that comes after a waiting exclusive one waits behind it", async () => {
    const held = await running(first(), { mode: "shared" });
    const exclusive = second().request(scene.name, (_, lease) => lease?.token);
    await queued(1);
    const shared = first().request(scene.name, { mode: "shared" }, (_, lease) => lease?.token);
    await queued(2);
    held.release();
    expect(await shared).toBeGreaterThan((await exclusive) ?? Infinity);
  });

  // --- ifAvailable.

  test("ifAvailable: the callback gets null if the lock is not available, and its result counts", async () => {
    const held = await running(first());
    const tried = second().request(scene.name, { ifAvailable: true }, (granted, lease) => [granted, lease]);
    expect(await tried).toEqual([null, null]);
    const thrown = second().request(scene.name, { ifAvailable: true }, () => Promise.reject("mine"));
    await expect(thrown).rejects.toBe("mine");
    expect((await lock().write.inspect()).waiterCount).toBe(0);
    held.release();
    await held.released;
    expect(await second().request(scene.name, { ifAvailable: true }, (granted) => granted?.name)).toBe(scene.name);
  });

  test("ifAvailable: a request that was made just before makes the lock unavailable", async () => {
    let release = (): void => {};
    const before = first().request(scene.name, () => new Promise<void>((resolve) => (release = resolve)));
    expect(await first().request(scene.name, { ifAvailable: true }, (granted) => granted)).toBeNull();
    release();
    await before;
  });

  // --- steal.

  test("steal: is granted immediately, even if held, and rejects the holder's request with AbortError", async () => {
    expect(await first().request(scene.name, { steal: true }, (granted) => granted?.mode)).toBe("exclusive");
    const held = await running(first());
    const outcome = held.released.catch((error: unknown) => error);
    const token = await second().request(scene.name, { steal: true }, (_, lease) => lease?.token);
    expect(token).toBeGreaterThan(held.lease.token);
    const error = await outcome;
    expect(error).toBeInstanceOf(DOMException);
    expect(error).toMatchObject({ name: "AbortError", cause: { reason: expect.stringMatching(BY_FORCE) } });
    expect((error as DOMException & { cause: unknown }).cause).toBeInstanceOf(LeaseLostError);
    expect(held.lease.signal.aborted).toBe(true);
    // The callback is still running. Its result is ignored.
    held.release("ignored");
    expect(await first().request(scene.name, () => "next")).toBe("next");
  });

  test("steal: ends all holds, and goes ahead of all waiters, which keep their order", async () => {
    const shared = { mode: "shared" } as const;
    const held = [await running(first(), shared), await running(second(), shared), await running(first(), shared)];
    const outcomes = held.map(({ released }) => released.catch((error: unknown) => error));
    const begun: string[] = [];
    const exclusive = second().request(scene.name, () => begun.push("exclusive"));
    await queued(1);
    const reader = first().request(scene.name, shared, () => begun.push("shared"));
    await queued(2);
    const thief = await running(second(), { steal: true });
    const { holders, waiterCount } = await lock().write.inspect();
    expect({ holders: holders.map(({ owner }) => owner), waiterCount }).toEqual({
      holders: [thief.lease.owner],
      waiterCount: 2,
    });
    for (const outcome of await Promise.all(outcomes)) expect(outcome).toMatchObject({ name: "AbortError" });
    expect(begun).toEqual([]);
    thief.release();
    await Promise.all([thief.released, exclusive, reader]);
    expect(begun).toEqual(["exclusive", "shared"]);
    for (const one of held) one.release();
  });

  test("steal: the last of several steals wins", async () => {
    const running1 = await running(first(), { steal: true });
    const stolen = running1.released.catch((error: unknown) => error);
    const running2 = await running(first(), { steal: true });
    expect(await stolen).toMatchObject({ name: "AbortError" });
    const stolenToo = running2.released.catch((error: unknown) => error);
    expect(await second().request(scene.name, { steal: true }, () => "last")).toBe("last");
    expect(await stolenToo).toMatchObject({ name: "AbortError" });
    for (const one of [running1, running2]) one.release();
  });

  test("steal: a paused lock is not stolen", async () => {
    const held = await running(first());
    await scene.holdfast.pause(scene.name, { kind: "read-write-lock", label: "work", by: "ops" });
    await expect(second().request(scene.name, { steal: true }, unreached)).rejects.toThrow(PausedError);
    expect((await lock().write.inspect()).holders).toMatchObject([{ owner: held.lease.owner }]);
    await scene.holdfast.resume(scene.name, { kind: "read-write-lock", by: "ops" });
    held.release("kept");
    expect(await held.released).toBe("kept");
  });

  // --- signal.

  test("signal: an abort ends the wait with its reason, and the next request is granted", async () => {
    const held = await running(first(), { mode: "shared" });
    const controller = new AbortController();
    const waiting = second().request(scene.name, { signal: controller.signal }, unreached);
    const rejected = expect(waiting).rejects.toBe("enough");
    await queued(1);
    const next = first().request(scene.name, { mode: "shared" }, () => "granted");
    await queued(2);
    controller.abort("enough");
    await rejected;
    expect(await next).toBe("granted");
    held.release();
    await held.released;
  });

  test("signal: an abort in the same turn ends the request, whether or not another request is before it", async () => {
    for (const others of [0, 1]) {
      const before = Array.from({ length: others }, () => first().request(scene.name, () => "before"));
      const controller = new AbortController();
      const aborted = first().request(scene.name, { signal: controller.signal }, unreached);
      const after = first().request(scene.name, () => "after");
      controller.abort();
      await expect(aborted).rejects.toMatchObject({ name: "AbortError" });
      expect(await Promise.all([...before, after])).toEqual([...before.map(() => "before"), "after"]);
    }
    await until(async () => (await lock().write.inspect()).holders.length === 0, "nothing to be held");
  });

  test("signal: an abort after the grant has no effect", async () => {
    const controller = new AbortController();
    const granted = first().request(scene.name, { signal: controller.signal }, async (_, lease) => {
      controller.abort();
      await second().request(`${scene.name}:other`, () => {});
      return lease?.signal.aborted;
    });
    expect(await granted).toBe(false);
  });

  // --- Where a distributed lock goes beyond the specification.

  test("a lock excludes the holders of the read-write lock with its name", async () => {
    const writer = await scene.rivalHoldfast.readWriteLock(scene.name).write.acquire();
    expect(await first().request(scene.name, { mode: "shared", ifAvailable: true }, (granted) => granted)).toBeNull();
    await writer.release();
    const reader = await scene.rivalHoldfast.readWriteLock(scene.name).read.acquire();
    expect(await first().request(scene.name, { ifAvailable: true }, (granted) => granted)).toBeNull();
    expect(await first().request(scene.name, { mode: "shared" }, (granted) => granted?.mode)).toBe("shared");
    await reader.release();
  });

  test("a request whose lease ends rejects with AbortError while its callback runs", async () => {
    const locks = lockManager(await scene.another({ leaseMs: BRIEF_LEASE_MS, renew: false }));
    const held = await running(locks);
    await expect(held.released).rejects.toMatchObject({ name: "AbortError", cause: { reason: "expired" } });
    held.release();
    const forced = await running(first());
    const rejected = expect(forced.released).rejects.toMatchObject({
      name: "AbortError",
      cause: { forced: { by: "ops" } },
    });
    expect(await lock().write.forceRelease({ owner: forced.lease.owner, by: "ops" })).toBe(true);
    await rejected;
    forced.release();
  });

  test("a holder that releases its lease itself ends its request with the callback's result", async () => {
    const ended = first().request(scene.name, async (_, lease) => {
      await lease?.release();
      return second().request(scene.name, () => "granted to another");
    });
    expect(await ended).toBe("granted to another");
  });

  test("close ends the requests of its own Holdfast", async () => {
    const holdfast = await scene.another();
    const locks = lockManager(holdfast);
    expect(lockManager(holdfast)).toBe(locks);
    const held = await running(locks);
    const rejected = expect(held.released).rejects.toMatchObject({ name: "AbortError" });
    const waiting = expect(locks.request(scene.name, unreached)).rejects.toThrow(ClosedError);
    await queued(1);
    await holdfast.close();
    await Promise.all([rejected, waiting]);
    await expect(locks.request(scene.name, unreached)).rejects.toThrow(ClosedError);
    held.release();
    expect(await second().request(scene.name, () => "free")).toBe("free");
  });

  test("no update is lost, and no reader sees half of one", async () => {
    const pair = [0, 0];
    let torn = 0;
    const write = async (): Promise<void> => {
      pair[0] = (pair[0] ?? 0) + 1;
      await sleep(1);
      pair[1] = (pair[1] ?? 0) + 1;
    };
    const read = async (): Promise<void> => {
      if (pair[0] !== pair[1]) torn += 1;
      await sleep(1);
    };
    await Promise.all(
      Array.from({ length: 60 }, (_, i) => {
        const locks = i % 2 === 0 ? first() : second();
        return i % 3 === 0 ? locks.request(scene.name, write) : locks.request(scene.name, { mode: "shared" }, read);
      }),
    );
    expect({ pair, torn }).toEqual({ pair: [20, 20], torn: 0 });
  });
}

/** Registers the tests of `query`, which needs SCAN. Call it inside a `describe` that names the store. */
export function webLocksQueryContract(subject: StoreUnderTest): void {
  const { scene, first, second, queued, running } = useWebScene(subject);
  const ofTheTest = <Info extends { readonly name: string }>(infos: readonly Info[]): Info[] =>
    infos.filter(({ name }) => name === scene.name);

  test("query: omits locks without holders and waiters", async () => {
    await first().request(scene.name, () => {});
    const { held, pending } = await first().query();
    expect([ofTheTest(held), ofTheTest(pending)]).toEqual([[], []]);
  });

  test("query: lists each holder and waiter with its name, mode and client, waiters in queue order", async () => {
    const held = [await running(first(), { mode: "shared" }), await running(second(), { mode: "shared" })];
    const waiting = [second().request(scene.name, () => {})];
    await queued(1);
    waiting.push(first().request(scene.name, { mode: "shared" }, () => {}));
    // The snapshot contains all earlier requests, so no delay is needed.
    const seen = await first().query();
    const [mine = "", other = ""] = held.map(({ lease }) => lease.owner.split("/")[0]);
    const { name } = scene;
    expect(ofTheTest(seen.held).toSorted((a, b) => (a.clientId === mine ? -1 : b.clientId === mine ? 1 : 0))).toEqual([
      { name, mode: "shared", clientId: mine },
      { name, mode: "shared", clientId: other },
    ]);
    expect(ofTheTest(seen.pending)).toEqual([
      { name, mode: "exclusive", clientId: other },
      { name, mode: "shared", clientId: mine },
    ]);
    expect((await second().query()).pending).toEqual(seen.pending);
    for (const one of held) one.release();
    await Promise.all([...held.map(({ released }) => released), ...waiting]);
  });

  test("query: shows names as they were requested", async () => {
    for (const name of ["", "\uD800", `\\${scene.name}"`]) {
      await first().request(name, async () => {
        expect((await second().query()).held.map((info) => info.name)).toContain(name);
      });
    }
  });
}

/** The contract of every store, with any client library. */

import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import { type RedisServer, startRedis } from "../../../../tests/support/redis-server.js";
import { startProxy, type TcpProxy } from "../../../../tests/support/tcp-proxy.js";
import { StoreError } from "../../src/core/errors.js";
import type { Store } from "../../src/core/store.js";
import { storeFor } from "../../src/stores/detect.js";
import { COUNT, ECHO, LARGE, RAISE, type Row } from "./rows.js";

/** Long enough for any reply that comes. */
const PATIENT_MS = 5_000;
/** For a reply that does not come. */
const SHORT_MS = 150;

const eventually = { timeout: 10_000, interval: 5 };
let serial = 0;
const unique = (word: string): string => `{${word}:${process.pid}:${++serial}}`;

/** How often a script was loaded. Redis 6 counts all subcommands of SCRIPT together, of which a test calls no other. */
function loadsIn(stats: Record<string, number>): number | undefined {
  return stats["script|load"] ?? stats.script;
}

/** Runs the contract on one row, with its own server. */
export function describeStoreContract(row: Row): void {
  describe(row.name, () => {
    let server: RedisServer;
    const cleanups: (() => unknown)[] = [];

    beforeAll(async () => {
      server = await startRedis();
    });
    afterEach(async () => {
      for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
    });
    afterAll(() => server.stop());

    async function open(port: number = server.port): Promise<{ store: Store; client: object }> {
      const client = await row.connect(port);
      const store = storeFor(client, { subscriber: row.subscriber(port) });
      cleanups.push(async () => {
        await store.close();
        await row.disconnect(client);
      });
      return { store, client };
    }
    async function openThroughProxy(): Promise<{ store: Store; client: object; proxy: TcpProxy }> {
      const proxy = await startProxy(server.port);
      cleanups.push(() => proxy.close());
      return { proxy, ...(await open(proxy.port)) };
    }
    const count = (store: Store, key: string, timeoutMs: number = PATIENT_MS) => store.run(COUNT, [key], [], timeoutMs);
    const countOnServer = (key: string) => server.command("GET", row.keyPrefix + key);
    const subscribers = async (channel: string): Promise<unknown> => {
      const reply = await server.command("PUBSUB", "NUMSUB", channel);
      return Array.isArray(reply) ? reply[1] : reply;
    };

    const listeningConnections = async (): Promise<string[]> =>
      String(await server.command("CLIENT", "LIST", "TYPE", "pubsub"))
        .split("\n")
        .filter((line) => line !== "");

    test("a store reports the kind of its library", async () => {
      const { store } = await open();
      expect(store.kind).toBe(row.kind);
    });

    test("a script replies with numbers, strings and null, however the client is configured", async () => {
      const { store } = await open();
      const reply = await store.run(ECHO, ["{k}"], [1_700_000_000_000_001], PATIENT_MS);
      const [code, argument, nil, tail, key] = Array.isArray(reply) ? reply : [];
      expect(Number(code)).toBe(3);
      expect([argument, nil, tail, key]).toEqual(["1700000000000001", null, "tail", `${row.keyPrefix}{k}`]);
      expect(await store.run(LARGE, ["{k}"], [], PATIENT_MS)).toBe(1_700_000_000_000_001);
    });

    test("a script missing on the server is loaded, and later calls send one command", async () => {
      const { store } = await open();
      const key = unique("forgotten");
      await server.command("SCRIPT", "FLUSH");
      expect(await count(store, key)).toBe(1);
      await server.command("SCRIPT", "FLUSH");
      expect(await count(store, key)).toBe(2);
      await server.command("CONFIG", "RESETSTAT");
      expect(await count(store, key)).toBe(3);
      const stats = await server.commandStats();
      expect([stats.evalsha, stats.eval, loadsIn(stats), stats.select]).toEqual([1, undefined, undefined, undefined]);
    });

    test("parallel calls after SCRIPT FLUSH each run once", async () => {
      const { store } = await open();
      const key = unique("parallel");
      await server.command("SCRIPT", "FLUSH");
      await Promise.all(Array.from({ length: 50 }, () => count(store, key)));
      expect(await countOnServer(key)).toBe("50");
    });

    test("an error inside a script is permanent, and the script may have run", async () => {
      const { store } = await open();
      const error = await store.run(RAISE, [unique("raise")], [], PATIENT_MS).catch((reason: unknown) => reason);
      expect(error).toBeInstanceOf(StoreError);
      expect(error).toMatchObject({ mayHaveRun: true, transient: false, lockName: RAISE.name });
    });

    test("a temporary refusal by the server is transient, and nothing ran", async () => {
      const { store } = await open();
      const key = unique("readonly");
      expect(await count(store, key)).toBe(1);
      // Redis 6 applies min-replicas-to-write to no script, and maxmemory to each write of one.
      const version = /redis_version:(\d+)/.exec(String(await server.command("INFO", "server")))?.[1];
      const [name, off, on] = Number(version) < 7 ? ["maxmemory", 0, 1] : ["min-replicas-to-write", 0, 1];
      cleanups.push(() => server.command("CONFIG", "SET", name, off));
      await server.command("CONFIG", "SET", name, on);
      const error = await count(store, key).catch((reason: unknown) => reason);
      expect(error).toBeInstanceOf(StoreError);
      expect(error).toMatchObject({ mayHaveRun: false, transient: true });
      await server.command("CONFIG", "SET", name, off);
      expect(await count(store, key)).toBe(2);
    });

    test("a frozen server costs no more than the timeout, and is used again when it resumes", async () => {
      const { store } = await open();
      const key = unique("frozen");
      expect(await count(store, key)).toBe(1);
      server.freeze();
      cleanups.push(() => server.resume());
      const startedAtMs = performance.now();
      const error = await count(store, key, SHORT_MS).catch((reason: unknown) => reason);
      const tookMs = performance.now() - startedAtMs;
      server.resume();
      expect(error).toBeInstanceOf(StoreError);
      expect(error).toMatchObject({ mayHaveRun: true, transient: true });
      expect(tookMs).toBeLessThan(SHORT_MS + 2_000);
      // The frozen call ran or did not; the next one runs either way.
      expect(Number(await count(store, key))).toBeGreaterThanOrEqual(2);
    });

    test("a call sends nothing more after its timeout", async () => {
      const { store, proxy } = await openThroughProxy();
      const key = unique("late");
      await count(store, key);
      await server.command("SCRIPT", "FLUSH");
      await server.command("CONFIG", "RESETSTAT");
      const { reached, release } = proxy.hold(/^SCRIPT LOAD/i);
      // Leaves the server enough time to reply NOSCRIPT.
      const call = count(store, key, 1_000).catch((reason: unknown) => reason);
      await reached;
      expect(await call).toMatchObject({ name: "StoreError", transient: true });
      release();
      await vi.waitFor(async () => expect(loadsIn(await server.commandStats())).toBe(1), eventually);
      expect(await count(store, key)).toBe(2);
      expect(await countOnServer(key)).toBe("2");
    });

    test("a call whose reply is lost settles, and its script ran once or twice", async () => {
      const { store, proxy } = await openThroughProxy();
      const key = unique("lost");
      // The script is loaded, so the first EVALSHA runs it.
      await count(store, unique("warm"));
      const struck = proxy.cutBeforeReply(/^EVALSHA/i);
      const outcome = await count(store, key).catch((reason: unknown) => reason);
      await struck;
      expect(proxy.counts.lostReplies).toBe(1);
      if (row.sendsAgain) expect(outcome).toBe(2);
      else expect(outcome).toMatchObject({ name: "StoreError", mayHaveRun: true, transient: true });
      expect(await countOnServer(key)).toBe(row.sendsAgain ? "2" : "1");
      await vi.waitFor(async () => expect(await count(store, key)).toBe(row.sendsAgain ? 3 : 2), eventually);
    });

    test("a resent call that is refused does not report that nothing ran", async () => {
      const { store, proxy } = await openThroughProxy();
      const key = unique("twice");
      await count(store, key);
      const struck = proxy.cutBeforeReply(/^EVALSHA/i);
      proxy.refuse(true);
      const call = count(store, key).catch((reason: unknown) => reason);
      await struck;
      await server.command("ACL", "SETUSER", "default", "-evalsha");
      cleanups.push(() => server.command("ACL", "SETUSER", "default", "+evalsha"));
      proxy.refuse(false);
      expect(await call).toMatchObject({ name: "StoreError", mayHaveRun: true });
      expect(await countOnServer(key)).toBe("2");
      // If the first send is refused, nothing has run.
      await vi.waitFor(async () => {
        const refusal = await count(store, key).catch((reason: unknown) => reason);
        expect(refusal).toMatchObject({ mayHaveRun: false, transient: false });
      }, eventually);
    });

    test("a call to an unreachable server fails within its timeout, and later calls work again", async () => {
      const { store, proxy } = await openThroughProxy();
      const key = unique("down");
      expect(await count(store, key)).toBe(1);
      proxy.refuse(true);
      proxy.cutAll();
      const error = await count(store, key, SHORT_MS).catch((reason: unknown) => reason);
      expect(error).toBeInstanceOf(StoreError);
      expect(error).toMatchObject({ transient: true });
      proxy.refuse(false);
      await vi.waitFor(() => count(store, key, 1_000), eventually);
    });

    test("a client closed by its owner causes a permanent StoreError, and nothing runs", async () => {
      const { store, client } = await open();
      const key = unique("closed");
      await count(store, key);
      await row.disconnect(client);
      cleanups.length = 0;
      await vi.waitFor(async () => {
        const error = await count(store, key, SHORT_MS).catch((reason: unknown) => reason);
        expect(error).toMatchObject({ name: "StoreError", mayHaveRun: false, transient: false });
      }, eventually);
      await store.close();
      expect(await countOnServer(key)).toBe("1");
    });

    test("the store reports that the command connection is back after a loss", async () => {
      const { store, proxy } = await openThroughProxy();
      const back: string[] = [];
      const stop = store.onReconnect((connection) => back.push(connection));
      await count(store, unique("back"));
      expect(back).toEqual([]);
      proxy.cutAll();
      await vi.waitFor(() => count(store, unique("back"), 1_000), eventually);
      if (row.hasEvents) await vi.waitFor(() => expect(back).toEqual(["commands"]), eventually);
      stop();
      proxy.cutAll();
      await vi.waitFor(() => count(store, unique("back"), 1_000), eventually);
      expect(back.length).toBe(row.hasEvents ? 1 : 0);
    });

    test("an inbox receives every message on its channel from the moment it is open", async () => {
      const { store } = await open();
      const [one, two] = [unique("one"), unique("two")];
      const heard: string[] = [];
      await store.inbox(one, (message) => heard.push(`one ${message}`), PATIENT_MS);
      await store.inbox(two, (message) => heard.push(`two ${message}`), PATIENT_MS);
      expect(await server.command("PUBLISH", one, "a")).toBe(1);
      expect(await server.command("PUBLISH", two, "b ünï 😀")).toBe(1);
      expect(await server.command("PUBLISH", `${row.keyPrefix}x${one}`, "not ours")).toBe(0);
      await vi.waitFor(() => expect(heard).toEqual(["one a", "two b ünï 😀"]), eventually);
    });

    test("a closed inbox receives nothing and is unsubscribed, and the others still receive", async () => {
      const { store } = await open();
      const [one, two] = [unique("one"), unique("two")];
      const heard: string[] = [];
      const inbox = await store.inbox(one, (message) => heard.push(`one ${message}`), PATIENT_MS);
      const twin = await store.inbox(one, (message) => heard.push(`twin ${message}`), PATIENT_MS);
      await store.inbox(two, (message) => heard.push(`two ${message}`), PATIENT_MS);
      await inbox.close();
      await inbox.close();
      expect(await server.command("PUBLISH", one, "a")).toBe(1);
      await vi.waitFor(() => expect(heard).toEqual(["twin a"]), eventually);
      await twin.close();
      expect(await subscribers(one)).toBe(0);
      expect(await server.command("PUBLISH", two, "b")).toBe(1);
      await vi.waitFor(() => expect(heard).toEqual(["twin a", "two b"]), eventually);
      // The same channel can be opened again.
      await store.inbox(one, (message) => heard.push(`again ${message}`), PATIENT_MS);
      expect(await server.command("PUBLISH", one, "c")).toBe(1);
      await vi.waitFor(() => expect(heard).toContain("again c"), eventually);
    });

    test("all inboxes of a store share one connection, separate from the caller's", async () => {
      const { store, client } = await open();
      const channels = [unique("a"), unique("b"), unique("c")];
      await Promise.all(channels.map((channel) => store.inbox(channel, () => {}, PATIENT_MS)));
      // The connections of earlier tests may take a moment to close.
      await vi.waitFor(
        async () => expect(await listeningConnections()).toEqual([expect.stringContaining("sub=3")]),
        eventually,
      );
      await row.ping(client);
    });

    test("a killed subscriber connection reconnects, resubscribes and only then reports it", async () => {
      const { store } = await open();
      const [one, two] = [unique("one"), unique("two")];
      const heard: string[] = [];
      await store.inbox(one, (message) => heard.push(message), PATIENT_MS);
      await store.inbox(two, (message) => heard.push(message), PATIENT_MS);
      await vi.waitFor(async () => expect((await listeningConnections()).length).toBe(1), eventually);
      const received: Promise<unknown>[] = [];
      store.onReconnect((connection) => {
        // Both channels must be subscribed at this moment, or a grant in the gap would stay unknown.
        if (connection === "inbox")
          received.push(...[one, two].map((channel) => server.command("PUBLISH", channel, "x")));
      });
      expect(await server.command("CLIENT", "KILL", "TYPE", "pubsub")).toBe(1);
      if (row.kind === "glide") {
        await vi.waitFor(
          async () => expect([await subscribers(one), await subscribers(two)]).toEqual([1, 1]),
          eventually,
        );
        await server.command("PUBLISH", one, "x");
      } else {
        await vi.waitFor(() => expect(received.length).toBeGreaterThan(0), eventually);
        expect(await Promise.all(received)).toEqual([1, 1]);
      }
      await vi.waitFor(() => expect(heard).toContain("x"), eventually);
    });

    test("after a disconnect, an inbox counts as open only when the server has confirmed it again", async () => {
      const { store, proxy } = await openThroughProxy();
      const channel = unique("confirmed");
      await store.inbox(channel, () => {}, PATIENT_MS);
      const order: string[] = [];
      store.onReconnect((connection) => order.push(connection));
      const { reached, release } = proxy.hold(/^SUBSCRIBE/i);
      await server.command("CLIENT", "KILL", "TYPE", "pubsub");
      await reached;
      const twin = store.inbox(channel, () => {}, PATIENT_MS).then(() => order.push("twin"));
      expect(await subscribers(channel)).toBe(0);
      expect(order).toEqual([]);
      release();
      await twin;
      expect(await subscribers(channel)).toBe(1);
      if (row.kind !== "glide") await vi.waitFor(() => expect(order).toContain("inbox"), eventually);
    });

    test("opening an inbox on a silent server fails in time, leaves no subscription and can be retried", async () => {
      const { store, proxy } = await openThroughProxy();
      const [first, second] = [unique("first"), unique("second")];
      await store.inbox(first, () => {}, PATIENT_MS);
      proxy.stall();
      const error = await store.inbox(second, () => {}, SHORT_MS).catch((reason: unknown) => reason);
      expect(error).toBeInstanceOf(StoreError);
      expect(error).toMatchObject({ transient: true, mayHaveRun: false, lockName: second });
      proxy.resume();
      await vi.waitFor(async () => expect(await subscribers(second)).toBe(0), eventually);
      const heard: string[] = [];
      await vi.waitFor(() => store.inbox(second, (message) => heard.push(message), 1_000), eventually);
      expect(await server.command("PUBLISH", second, "a")).toBe(1);
      await vi.waitFor(() => expect(heard).toEqual(["a"]), eventually);
    });

    test("close() ends only what the store opened, and leaves no listener on the caller's client", async () => {
      const client = await row.connect(server.port);
      cleanups.push(() => row.disconnect(client));
      await row.ping(client);
      const before = row.listeners(client);
      const store = storeFor(client, { subscriber: row.subscriber(server.port) });
      const channel = unique("close");
      await store.inbox(channel, () => {}, PATIENT_MS);
      await count(store, unique("close"));
      const added = Object.values(row.listeners(client)).reduce((sum, n) => sum + n, 0);
      expect(added - Object.values(before).reduce((sum, n) => sum + n, 0)).toBeLessThanOrEqual(2);
      await store.close();
      await store.close();
      expect(row.listeners(client)).toEqual(before);
      // GLIDE closes its socket seconds after `close`, so it must have unsubscribed before.
      if (row.kind === "glide") expect(await subscribers(channel)).toBe(0);
      await vi.waitFor(async () => expect(await subscribers(channel)).toBe(0), eventually);
      await row.ping(client);
      await expect(store.inbox(channel, () => {}, PATIENT_MS)).rejects.toMatchObject({ transient: false });
    });

    test("a store defines no property on the caller's client", async () => {
      const client = await row.connect(server.port);
      cleanups.push(() => row.disconnect(client));
      await row.ping(client);
      const before = Object.getOwnPropertyNames(client);
      const store = storeFor(client, { subscriber: row.subscriber(server.port) });
      await count(store, unique("own"));
      expect(Object.getOwnPropertyNames(client)).toEqual(before);
      await store.close();
    });
  });
}

/** The subscriber connection is encrypted and logged in like the client it was made from, even after a reconnect. */
import { Redis } from "ioredis";
import { createClient } from "redis";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startTlsRedis, type TlsServer } from "../../../../tests/support/tls-server.js";
import type { Inbox } from "../../src/core/store.js";
import { storeFor } from "../../src/stores/detect.js";
import { LONG_MS, until } from "../../src/testing/delays.js";
import { ON_ONE_SERVER, permit } from "../permissions/acl.js";

const USER = { username: "locks", password: "secret" };

let tls: TlsServer;
beforeAll(async () => {
  tls = await startTlsRedis("any");
  await permit(tls.server, USER.username, ON_ONE_SERVER);
}, 90_000);
afterAll(() => tls?.stop());

const libraries: Readonly<Record<string, () => Promise<{ readonly redis: object; readonly close: () => unknown }>>> = {
  async ioredis() {
    const redis = new Redis({ host: "127.0.0.1", port: tls.tlsPort, tls: { ca: tls.ca }, ...USER });
    redis.on("error", () => {});
    return { redis, close: () => redis.disconnect() };
  },
  async "node-redis"() {
    const redis = createClient({ socket: { host: "127.0.0.1", port: tls.tlsPort, tls: true, ca: tls.ca }, ...USER });
    redis.on("error", () => {});
    await redis.connect();
    return { redis, close: () => redis.destroy() };
  },
};

/** Id, user and port of each connection that is subscribed. */
async function subscribers(): Promise<{ id: string; user: string; port: number }[]> {
  const list = String(await tls.server.command("CLIENT", "LIST", "TYPE", "pubsub"));
  const field = (line: string, name: string): string => new RegExp(`(?:^| )${name}=(\\S*)`).exec(line)?.[1] ?? "";
  return list
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => ({
      id: field(line, "id"),
      user: field(line, "user"),
      port: Number(field(line, "laddr").split(":").at(-1)),
    }));
}

describe.each(Object.keys(libraries))("%s", (library) => {
  const lost: Readonly<Record<string, (inbox: Inbox, id: string) => Promise<unknown>>> = {
    "the server closed it": (_, id) => tls.server.command("CLIENT", "KILL", "ID", id),
    "it was replaced": async (inbox) => inbox.reopen?.(LONG_MS),
  };
  test.each(Object.keys(lost))("messages arrive again after %s", async (how) => {
    const { redis, close } = await (libraries[library] as () => ReturnType<(typeof libraries)[string]>)();
    const store = storeFor(redis);
    try {
      const heard: string[] = [];
      const back: string[] = [];
      store.onReconnect((connection) => back.push(connection));
      const inbox = await store.inbox("hf:in:me", (message) => heard.push(message), LONG_MS);
      const [first] = await subscribers();
      expect(first).toMatchObject({ user: "locks", port: tls.tlsPort });
      await lost[how]?.(inbox, first?.id ?? "");
      await until(() => back.includes("inbox"), "the connection to be back");
      await until(async () => (await subscribers()).every(({ id }) => id !== first?.id), "the old one to be gone");
      expect(await subscribers()).toMatchObject([{ user: "locks", port: tls.tlsPort }]);
      expect(await tls.server.command("PUBLISH", "hf:in:me", "news")).toBe(1);
      await until(() => heard.includes("news"), "the message");
    } finally {
      await store.close();
      await close();
      await until(async () => (await subscribers()).length === 0, "the connection to be closed");
    }
  });
});

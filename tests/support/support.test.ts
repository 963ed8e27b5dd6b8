import { once } from "node:events";
import { createConnection } from "node:net";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { type RedisServer, startRedis } from "./redis-server.js";
import { encodeCommand, RespParser, type RespValue } from "./resp.js";
import { startProxy, type TcpProxy } from "./tcp-proxy.js";

let server: RedisServer;
let proxy: TcpProxy;

beforeEach(async () => {
  server = await startRedis();
  proxy = await startProxy(server.port);
});
afterEach(async () => {
  await proxy.close();
  await server.stop();
});

/** Opens a connection through the proxy and collects everything it receives. */
async function connect(): Promise<{ send(...words: string[]): void; got: RespValue[]; closed: Promise<unknown> }> {
  const socket = createConnection({ port: proxy.port, host: "127.0.0.1" });
  const parser = new RespParser();
  const got: RespValue[] = [];
  socket.on("data", (bytes) => got.push(...parser.push(bytes).map((frame) => frame.value)));
  socket.on("error", () => {});
  await once(socket, "connect");
  return { send: (...words) => void socket.write(encodeCommand(words)), got, closed: once(socket, "close") };
}

test("the proxy loses only the matching reply, after the server has applied the command", async () => {
  const { send, got, closed } = await connect();
  const struck = proxy.cutBeforeReply(/^INCR hit/);
  send("INCR", "other");
  send("INCR", "hit");
  await Promise.all([struck, closed]);
  expect(got).toEqual([1]);
  expect(await server.command("GET", "hit")).toBe("1");
  expect(proxy.counts).toMatchObject({ lostReplies: 1, cuts: 1, requests: 2 });
});

test("a lost request never reaches the server", async () => {
  const { send, closed } = await connect();
  const struck = proxy.cutBeforeRequest(/^INCR/);
  send("INCR", "hit");
  await Promise.all([struck, closed]);
  expect(await server.command("EXISTS", "hit")).toBe(0);
  expect(proxy.counts.lostRequests).toBe(1);
});

test("a duplicated request runs twice and gets one reply", async () => {
  const { send, got } = await connect();
  const struck = proxy.duplicate((words) => words[0] === "INCR");
  send("INCR", "hit");
  send("GET", "hit");
  await struck;
  await vi.waitFor(() => expect(got).toEqual([2, "2"]));
  expect(proxy.counts.duplicated).toBe(1);
});

test("a held request and later requests on its connection wait in order for the release", async () => {
  const [held, free] = [await connect(), await connect()];
  const { reached, release } = proxy.hold(/^SET/);
  held.send("SET", "k", "old");
  held.send("GET", "k");
  await reached;
  free.send("SET", "k", "new");
  await vi.waitFor(() => expect(free.got).toEqual(["OK"]));
  expect(held.got).toEqual([]);
  release();
  await vi.waitFor(() => expect(held.got).toEqual(["OK", "old"]));
  expect(proxy.counts.held).toBe(1);
});

test("the proxy counts dropped messages, without subscription confirmations", async () => {
  const { send, got } = await connect();
  send("SUBSCRIBE", "a", "b");
  await vi.waitFor(() => expect(got.length).toBe(2));
  proxy.dropMessages(true);
  expect(await server.command("PUBLISH", "a", "lost")).toBe(1);
  await vi.waitFor(() => expect(proxy.counts.droppedMessages).toBe(1));
  proxy.dropMessages(false);
  await server.command("PUBLISH", "b", "heard");
  await vi.waitFor(() => expect(got.at(-1)).toEqual(["message", "b", "heard"]));
  expect(got.length).toBe(3);
});

test("a stalled proxy forwards nothing until it resumes, and then everything", async () => {
  const { send, got } = await connect();
  send("PING");
  await vi.waitFor(() => expect(got).toEqual(["PONG"]));
  proxy.stall();
  send("INCR", "k");
  expect(await server.command("GET", "k")).toBe(null);
  proxy.resume();
  await vi.waitFor(() => expect(got).toEqual(["PONG", 1]));
});

test("a refusing proxy closes new connections until it no longer refuses", async () => {
  proxy.refuse(true);
  const refused = await connect();
  await refused.closed;
  proxy.refuse(false);
  const { send, got } = await connect();
  send("PING");
  await vi.waitFor(() => expect(got).toEqual(["PONG"]));
});

test("only a server that persists keeps its data across a kill and a restart", async () => {
  const persistent = await startRedis({ persist: true });
  try {
    for (const each of [persistent, server]) {
      const pid = each.pid;
      await each.command("SET", "k", "v");
      await each.kill();
      await each.restart();
      expect(each.pid).not.toBe(pid);
    }
    expect(await persistent.command("GET", "k")).toBe("v");
    expect(await server.command("GET", "k")).toBe(null);
  } finally {
    await persistent.stop();
  }
});

test("the server counts its commands", async () => {
  await server.command("CONFIG", "RESETSTAT");
  await server.command("GET", "k");
  await server.command("GET", "k");
  expect(await server.commandStats()).toMatchObject({ get: 2 });
});

test("the error for a missing server binary is one line with a remedy", async () => {
  vi.stubEnv("HOLDFAST_REDIS_SERVER", "/nowhere/redis-server");
  vi.resetModules();
  try {
    const fresh = await import("./redis-server.js");
    await expect(fresh.startRedis()).rejects.toThrow(
      /^There is no \/nowhere\/redis-server: install it .* or set HOLDFAST_REDIS_SERVER\.$/,
    );
  } finally {
    vi.unstubAllEnvs();
  }
});

test("the parser reads RESP values from chunks of any size, even single bytes", () => {
  const text = "*3\r\n$5\r\nh\u00e9l\r\r\n:7\r\n*-1\r\n>2\r\n+a\r\n_\r\n%1\r\n$1\r\nk\r\n#t\r\n-ERR no\r\n$-1\r\n";
  const parser = new RespParser();
  const values: RespValue[] = [];
  for (const byte of Buffer.from(text)) values.push(...parser.push(Buffer.from([byte])).map((frame) => frame.value));
  expect(values).toEqual([["hél\r", 7, null], ["a", null], ["k", 1], new Error("ERR no"), null]);
  expect(new RespParser().push(Buffer.from(text)).map((frame) => frame.value)).toEqual(values);
});

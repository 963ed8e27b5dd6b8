/** One command on a connection of its own, past every proxy; and ports to do it on. */

import { once } from "node:events";
import { createConnection, createServer } from "node:net";
import { encodeCommand, RespParser, type RespValue } from "./resp.js";

/** Longest wait for the answer to one command: a guard against a server that stands still, not a measure. */
const TIMEOUT_MS = 10_000;

/** Sends one command to the server on `port`. @throws Error  it answered with an error, not at all, or not in time */
export function ask(
  port: number,
  words: readonly (string | number)[],
  timeoutMs: number = TIMEOUT_MS,
): Promise<RespValue> {
  return new Promise((resolve, reject) => {
    const socket = createConnection({ port, host: "127.0.0.1" });
    const parser = new RespParser();
    socket.setTimeout(timeoutMs, () => {
      socket.destroy();
      reject(new Error(`the server on port ${port} did not answer ${words[0]} within ${timeoutMs} ms`));
    });
    socket.on("data", (bytes) => {
      const [reply] = parser.push(bytes);
      if (reply === undefined) return;
      socket.destroy();
      if (reply.value instanceof Error) reject(reply.value);
      else resolve(reply.value);
    });
    socket.on("error", reject);
    socket.on("close", () => reject(new Error(`the server on port ${port} closed the connection`)));
    socket.write(encodeCommand(words));
  });
}

/** Of those that are chosen here and not by the system, which hands out higher ones to connections all the time. */
const LOWEST_PORT = 10_000;

/** A port that was free a moment ago; any, or one below a limit. */
export async function freePort(below?: number): Promise<number> {
  if (below === undefined) return probePort(0);
  for (;;) {
    const port = LOWEST_PORT + Math.floor(Math.random() * (below - LOWEST_PORT));
    const free = await probePort(port).catch(() => undefined);
    if (free !== undefined) return free;
  }
}

async function probePort(port: number): Promise<number> {
  const probe = createServer().listen(port, "127.0.0.1");
  await once(probe, "listening");
  const address = probe.address();
  probe.close();
  await once(probe, "close");
  if (address === null || typeof address === "string") throw new Error("a TCP server has a port");
  return address.port;
}

/** Sends single commands on separate connections without a proxy, and finds free ports. */

import { once } from "node:events";
import { createConnection, createServer } from "node:net";
import { encodeCommand, RespParser, type RespValue } from "./resp.js";

/** A timeout for the reply to one command, for servers that are frozen; it does not measure speed. */
const TIMEOUT_MS = 10_000;

/** Sends one command to the server on `port`. @throws Error  the reply is an error, or there is no reply in time */
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

/**
 * The port range. Ports are chosen here because the system constantly assigns its own ports, from 32 768 on, to
 * connections, and the port of a dead server must still be free when it restarts.
 */
const FREE_FOR_ALL: PortRange = { from: 26_000, below: 32_768 };

/** A cluster node has a port from 10 000 up to this, and its bus has the port 10 000 above. */
export const NODES_BELOW_PORT = 16_000;
const LOWEST_PORT = 10_000;

/** Test files run in several processes at the same time, each with its own part of the ports. */
const WORKERS = 16;

interface PortRange {
  readonly from: number;
  readonly below: number;
}

/** How many ports this process has requested in each range. */
const asked = new Map<number, number>();

/** A port that was free just now: outside the range of clusters, or, for a cluster node, below the limit. */
export async function freePort(below?: number): Promise<number> {
  const { from, below: end } = below === undefined ? FREE_FOR_ALL : { from: LOWEST_PORT, below };
  const { VITEST_POOL_ID: pool } = process.env;
  // Test runs use the first half.
  const worker = (pool === undefined ? WORKERS / 2 : 0) + (Number(pool ?? process.pid) % (WORKERS / 2));
  const size = Math.floor((end - from) / WORKERS);
  for (let tries = 0; tries < size; tries += 1) {
    // Sequential, so that ports repeat as late as possible; each process starts at another position.
    const next = asked.get(from) ?? Math.floor(Math.random() * size);
    asked.set(from, next + 1);
    const port = from + worker * size + (next % size);
    if (await isFree(port)) return port;
  }
  throw new Error(`there is no free port from ${from} up to ${end}`);
}

async function isFree(port: number): Promise<boolean> {
  const probe = createServer().listen(port, "127.0.0.1");
  try {
    await once(probe, "listening");
  } catch {
    return false;
  }
  probe.close();
  await once(probe, "close");
  return true;
}

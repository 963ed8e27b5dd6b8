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

/**
 * Ports are chosen here and not by the system: it hands its own, from 32 768 on, to connections all the time, and the
 * port of a server that is dead for a while must still be there when it comes back.
 */
const FREE_FOR_ALL: PortRange = { from: 26_000, below: 32_768 };

/** A node of a cluster has a port from 10 000 on and below this, and its bus the one 10 000 above. */
export const NODES_BELOW_PORT = 16_000;
const LOWEST_PORT = 10_000;

/** Test files run in several processes at once, each of which has a part of the ports for itself. */
const WORKERS = 16;

interface PortRange {
  readonly from: number;
  readonly below: number;
}

/** How many ports this process has asked about, in each range. */
const asked = new Map<number, number>();

/** A port that was free a moment ago; of those that no cluster uses, or, for a node of one, below a limit. */
export async function freePort(below?: number): Promise<number> {
  const { from, below: end } = below === undefined ? FREE_FOR_ALL : { from: LOWEST_PORT, below };
  const { VITEST_POOL_ID: pool } = process.env;
  // Test runs use the first half.
  const worker = (pool === undefined ? WORKERS / 2 : 0) + (Number(pool ?? process.pid) % (WORKERS / 2));
  const size = Math.floor((end - from) / WORKERS);
  for (let tries = 0; tries < size; tries += 1) {
    // One after the other, so that none comes twice as long as there are others; each process begins somewhere else.
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

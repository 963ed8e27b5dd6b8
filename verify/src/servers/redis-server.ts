/**
 * A Redis server of one's own for a test: on a free loopback port, in a directory of its own, gone at the end.
 *
 * The binary comes from PATH, or from HOLDFAST_REDIS_SERVER. Where there is none the start fails in one line;
 * no test is skipped for it.
 */

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ask, freePort } from "../faults/topology/ask.js";
import type { RespValue } from "../faults/topology/resp.js";

export { freePort };

const BINARY: string = process.env.HOLDFAST_REDIS_SERVER ?? "redis-server";
const CONFIG_FILE = "redis.conf";
const START_TRIES = 5;
/** A guard against a server that never comes up, not a measure of how fast it should. */
const START_TIMEOUT_MS = 10_000;
const PROBE_EVERY_MS = 5;

export interface RedisServerOptions {
  /** More arguments of redis-server, after ours, so that they win. */
  readonly args?: readonly string[];
  /** Keeps an append-only file written at every command, so that `restart` finds the data again. */
  readonly persist?: boolean;
  /** The port has to be lower than this, because the server opens another one at a distance. */
  readonly belowPort?: number;
  /** Text of a configuration file that the server owns from then on: what a sentinel remembers stands there. */
  readonly configFile?: string;
}

export interface RedisServer {
  readonly port: number;
  /** Of the present process; a restart makes another. */
  readonly pid: number;
  readonly url: string;
  /** Sends one command on a connection of its own and gives the reply; rejects on an error reply. */
  command(...words: (string | number)[]): Promise<RespValue>;
  /** Calls per command since the last CONFIG RESETSTAT, by lower-case name. */
  commandStats(): Promise<Record<string, number>>;
  /** SIGKILL. The directory stays, for `restart`. */
  kill(): Promise<void>;
  /** SIGSTOP: accepts connections and answers nothing. */
  freeze(): void;
  /** SIGCONT. */
  resume(): void;
  /** Starts again on the same port and directory, after `kill` or in place of a running one. */
  restart(): Promise<void>;
  /** Ends the server and removes its directory. A second call does nothing. */
  stop(): Promise<void>;
}

const running = new Set<ChildProcess>();
process.on("exit", () => {
  for (const child of running) child.kill("SIGKILL");
});

/** Starts a server and waits until it answers. */
export async function startRedis(options: RedisServerOptions = {}): Promise<RedisServer> {
  const directory = await mkdtemp(join(tmpdir(), "holdfast-redis-"));
  try {
    if (options.configFile !== undefined) await writeFile(join(directory, CONFIG_FILE), options.configFile);
    return serverOn(directory, options, ...(await startOnFreePort(directory, options)));
  } catch (error) {
    await rm(directory, { recursive: true, force: true });
    throw error;
  }
}

async function startOnFreePort(directory: string, options: RedisServerOptions): Promise<[number, ChildProcess]> {
  for (let tries = 1; ; tries += 1) {
    const port = await freePort(options.belowPort);
    try {
      return [port, await launch(port, directory, options)];
    } catch (error) {
      // Another process may have taken the port in between.
      if (tries === START_TRIES || !/Address already in use|Failed listening/.test(String(error))) throw error;
    }
  }
}

function serverOn(directory: string, options: RedisServerOptions, port: number, first: ChildProcess): RedisServer {
  let child = first;
  async function kill(): Promise<void> {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const exited = once(child, "exit");
    child.kill("SIGKILL");
    await exited;
  }
  return {
    port,
    get pid() {
      return child.pid as number;
    },
    url: `redis://127.0.0.1:${port}`,
    command: (...words) => ask(port, words),
    async commandStats() {
      const info = String(await ask(port, ["INFO", "commandstats"]));
      const counts = [...info.matchAll(/^cmdstat_([^:]+):calls=(\d+)/gm)];
      return Object.fromEntries(counts.map(([, name, calls]) => [name, Number(calls)]));
    },
    kill,
    freeze: () => void child.kill("SIGSTOP"),
    resume: () => void child.kill("SIGCONT"),
    async restart() {
      await kill();
      child = await launch(port, directory, options);
    },
    async stop() {
      await kill();
      await rm(directory, { recursive: true, force: true });
    },
  };
}

async function launch(port: number, directory: string, options: RedisServerOptions): Promise<ChildProcess> {
  const persistence =
    options.persist === true ? ["--appendonly", "yes", "--appendfsync", "always"] : ["--appendonly", "no"];
  const flags = ["--port", `${port}`, "--bind", "127.0.0.1", "--save", "", ...persistence, "--dir", directory];
  const file = options.configFile === undefined ? [] : [join(directory, CONFIG_FILE)];
  const child = spawn(BINARY, [...file, ...flags, ...(options.args ?? [])], { stdio: ["ignore", "pipe", "pipe"] });
  running.add(child);
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (text: string) => {
      output = (output + text).slice(-4_000);
    });
  }
  let failure: Error | undefined;
  child.once("error", (error: NodeJS.ErrnoException) => {
    running.delete(child);
    failure =
      error.code === "ENOENT"
        ? new Error(`There is no ${BINARY}: install it (apt-get install redis-server) or set HOLDFAST_REDIS_SERVER.`)
        : error;
  });
  child.once("exit", () => running.delete(child));
  // Not at its exit: what it said of the reason may not have arrived by then.
  child.once("close", () => {
    failure ??= new Error(`${BINARY} ended at once: ${output.trim()}`);
  });
  const giveUpAtMs = performance.now() + START_TIMEOUT_MS;
  while (failure === undefined && performance.now() < giveUpAtMs) {
    // A restarted server may still be reading its file, and says so.
    const answer = await ask(port, ["PING"]).catch(() => undefined);
    // If another server has the port, the PONG may come from that server.
    if (answer === "PONG" && String(await ask(port, ["INFO", "server"])).includes(`process_id:${child.pid}\r`)) {
      return child;
    }
    await new Promise((resolve) => setTimeout(resolve, PROBE_EVERY_MS));
  }
  child.kill("SIGKILL");
  throw failure ?? new Error(`${BINARY} did not answer within ${START_TIMEOUT_MS} ms: ${output.trim()}`);
}

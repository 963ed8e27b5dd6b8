/**
 * A Redis server for tests: on a free loopback port, in its own directory, removed at the end.
 *
 * The binary comes from PATH, or from HOLDFAST_REDIS_SERVER. Without one, the start fails with a one-line error and
 * no test is skipped.
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
/** A timeout for a server that never starts; it does not measure speed. */
const START_TIMEOUT_MS = 10_000;
const PROBE_EVERY_MS = 5;
const IN_USE = /Address already in use|Failed listening/;
/** How long a restart waits before it tries a port again that another process has. */
const PORT_AGAIN_MS = 1_000;

export interface RedisServerOptions {
  /** Additional arguments of redis-server. They come after the default ones, so they take precedence. */
  readonly args?: readonly string[];
  /** Whether to write an append-only file at every command, so that `restart` restores the data. */
  readonly persist?: boolean;
  /** An upper limit for the port, for servers that open a second port above it. */
  readonly belowPort?: number;
  /** The text of a configuration file that the server then rewrites, as sentinels do. */
  readonly configFile?: string;
}

export interface RedisServer {
  readonly port: number;
  /** The id of the current process; changes with a restart. */
  readonly pid: number;
  readonly url: string;
  /** Sends one command on a separate connection and returns the reply; rejects on an error reply. */
  command(...words: (string | number)[]): Promise<RespValue>;
  /** Calls per command since the last CONFIG RESETSTAT, by lower-case name. */
  commandStats(): Promise<Record<string, number>>;
  /** Sends SIGKILL. The directory remains for `restart`. */
  kill(): Promise<void>;
  /** Sends SIGSTOP: the server accepts connections but does not reply. */
  freeze(): void;
  /** Sends SIGCONT. */
  resume(): void;
  /** Restarts it on the same port and directory, after `kill` or while it runs. */
  restart(): Promise<void>;
  /** Ends the server and removes its directory. A second call does nothing. */
  stop(): Promise<void>;
}

const running = new Set<ChildProcess>();
process.on("exit", () => {
  for (const child of running) child.kill("SIGKILL");
});

/** Starts a server and waits until it replies. */
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
      if (tries === START_TRIES || !IN_USE.test(String(error))) throw error;
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
      for (let tries = 1; ; tries += 1) {
        try {
          child = await launch(port, directory, options);
          return;
        } catch (error) {
          // Another process may have the port for a moment, for example to find a free one.
          if (tries === START_TRIES || !IN_USE.test(String(error))) throw error;
          await new Promise((resolve) => setTimeout(resolve, PORT_AGAIN_MS));
        }
      }
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
  // Uses "close" instead of "exit", because its output may arrive after the exit.
  child.once("close", () => {
    failure ??= new Error(`${BINARY} ended immediately: ${output.trim()}`);
  });
  const giveUpAtMs = performance.now() + START_TIMEOUT_MS;
  while (failure === undefined && performance.now() < giveUpAtMs) {
    // A restarted server may still be loading its file, which it reports.
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

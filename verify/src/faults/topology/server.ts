/**
 * A redis-server on a free loopback port in its own directory, stopped by its process id.
 *
 * The binary comes from PATH, or from HOLDFAST_REDIS_SERVER. A server keeps its port and directory across kills and
 * restarts. Most server faults act on the files in that directory, so they belong to the caller.
 */

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { PowerLoss, ServerHandle } from "../stage.js";
import { ask, freePort } from "./ask.js";
import { cutToSynced } from "./power-loss.js";
import type { RespValue } from "./resp.js";
import { BentClock, SyncLog, shim } from "./shims.js";

const BINARY: string = process.env.HOLDFAST_REDIS_SERVER ?? "redis-server";
const CONFIG_FILE = "redis.conf";
const START_TRIES = 5;
/** A timeout for a server that never starts; it does not measure speed. */
const START_TIMEOUT_MS = 20_000;
const PROBE_EVERY_MS = 5;

/** What the disk keeps: nothing (1n), what was synced each second (1e), or everything with a reply (1a). */
export type Durability = "1n" | "1e" | "1a";

/** The options of a server. */
export interface ServerOptions {
  readonly name?: string;
  readonly durability: Durability;
  /** Additional arguments of redis-server. They come after the default ones, so they take precedence. */
  readonly args?: readonly string[];
  /** The text of a configuration file that the server then rewrites, as sentinels do. */
  readonly configFile?: string;
  /** An upper limit for the port, for servers that open a second port above it. */
  readonly belowPort?: number;
  /** Whether its wall clock can be stepped. */
  readonly hasClockShim?: boolean;
  /** Whether it records what it has synced, to simulate a power loss. */
  readonly hasSyncShim?: boolean;
}

/** A server, with the functions that only its owner may use. */
export interface OwnServer extends ServerHandle {
  command(...words: (string | number)[]): Promise<RespValue>;
  /** Ends the server and removes its directory. A second call does nothing. */
  stop(): Promise<void>;
}

const running = new Set<ChildProcess>();
process.on("exit", () => {
  for (const child of running) child.kill("SIGKILL");
});

const ARGUMENTS: Readonly<Record<Durability, readonly string[]>> = {
  "1n": ["--appendonly", "no"],
  "1e": ["--appendonly", "yes", "--appendfsync", "everysec"],
  "1a": ["--appendonly", "yes", "--appendfsync", "always", "--no-appendfsync-on-rewrite", "no"],
};

/**
 * Starts a server and waits until it replies.
 *
 * @throws Error  there is no binary, no compiler for a shim, or the server ended; the message says which
 */
export async function startServer(options: ServerOptions): Promise<OwnServer> {
  const directory = await mkdtemp(join(tmpdir(), "holdfast-server-"));
  try {
    if (options.configFile !== undefined) await writeFile(join(directory, CONFIG_FILE), options.configFile);
    return await Server.start(directory, options);
  } catch (error) {
    await rm(directory, { recursive: true, force: true });
    throw error;
  }
}

class Server implements OwnServer {
  readonly name: string;
  readonly directory: string;
  readonly #syncLog: SyncLog | undefined;
  readonly #clock: BentClock | undefined;
  readonly #args: readonly string[];
  readonly #configFile: readonly string[];
  readonly #env: NodeJS.ProcessEnv;
  #port = 0;
  #child: ChildProcess | undefined;
  #isStopped = false;

  static async start(directory: string, options: ServerOptions): Promise<Server> {
    const shims: string[] = [];
    if (options.hasClockShim === true) shims.push(await shim("clock-shim"));
    if (options.hasSyncShim === true) shims.push(await shim("sync-shim"));
    const server = new Server(directory, options, shims);
    for (let tries = 1; ; tries += 1) {
      server.#port = await freePort(options.belowPort);
      try {
        server.#child = await server.#launch();
        return server;
      } catch (error) {
        // Another process may have taken the port in between.
        if (tries === START_TRIES || !String(error).includes("Address already in use")) throw error;
      }
    }
  }

  private constructor(directory: string, options: ServerOptions, shims: readonly string[]) {
    this.name = options.name ?? "server";
    this.directory = directory;
    const { durability, args = [] } = options;
    this.#configFile = options.configFile === undefined ? [] : [join(directory, CONFIG_FILE)];
    this.#args = ["--save", "", "--enable-debug-command", "yes", ...ARGUMENTS[durability], ...args];
    this.#env = { ...process.env };
    if (shims.length > 0) this.#env.LD_PRELOAD = shims.join(":");
    if (options.hasClockShim === true) {
      this.#clock = new BentClock(join(directory, "clock"));
      this.#env.HOLDFAST_CLOCK_FILE = this.#clock.path;
    }
    if (options.hasSyncShim === true) {
      this.#syncLog = new SyncLog(join(directory, "synced"));
      this.#env.HOLDFAST_SYNC_FILE = this.#syncLog.path;
    }
  }

  get port(): number {
    return this.#port;
  }

  get pid(): number {
    return this.#child?.pid ?? 0;
  }

  command(...words: (string | number)[]): Promise<RespValue> {
    return ask(this.#port, words);
  }

  freeze(): void {
    this.#child?.kill("SIGSTOP");
  }

  resume(): void {
    this.#child?.kill("SIGCONT");
  }

  kill(): Promise<void> {
    return this.#end((child) => void child.kill("SIGKILL"));
  }

  async shutdown(): Promise<void> {
    await this.#end(() => {
      // SHUTDOWN sends no reply.
      this.command("SHUTDOWN").catch(() => {});
    });
  }

  async restart(): Promise<void> {
    await this.kill();
    this.#child = await this.#launch();
  }

  stepClock(offsetMs: number): void {
    this.#bent().step(offsetMs);
  }

  freezeClock(): void {
    this.#bent().freeze();
  }

  slowSyncs(ms: number): void {
    this.#synced().slowDown(ms);
  }

  async powerLoss(): Promise<PowerLoss> {
    const synced = this.#synced();
    await this.kill();
    return cutToSynced(this.directory, synced);
  }

  async stop(): Promise<void> {
    if (this.#isStopped) return;
    this.#isStopped = true;
    await this.kill();
    this.#clock?.close();
    this.#syncLog?.close();
    await rm(this.directory, { recursive: true, force: true });
  }

  #bent(): BentClock {
    if (this.#clock === undefined) throw new Error(`${this.name} was started without the clock shim`);
    return this.#clock;
  }

  #synced(): SyncLog {
    if (this.#syncLog === undefined) throw new Error(`${this.name} was started without the sync shim`);
    return this.#syncLog;
  }

  async #end(how: (child: ChildProcess) => void): Promise<void> {
    const child = this.#child;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const exited = once(child, "exit");
    how(child);
    await exited;
  }

  async #launch(): Promise<ChildProcess> {
    const flags = ["--port", `${this.#port}`, "--bind", "127.0.0.1", "--dir", this.directory, ...this.#args];
    const child = spawn(BINARY, [...this.#configFile, ...flags], { stdio: ["ignore", "pipe", "pipe"], env: this.#env });
    const death = watch(child);
    const giveUpAtMs = performance.now() + START_TIMEOUT_MS;
    while (death.cause() === undefined && performance.now() < giveUpAtMs) {
      // A restarted server may still be loading its file. If the port was taken, another server replies.
      const info = await ask(this.#port, ["INFO", "server"]).catch(() => "");
      const isReady = String(info).includes(`process_id:${child.pid}\r`);
      if (isReady && (await ask(this.#port, ["PING"]).catch(() => "")) === "PONG") return child;
      await sleep(PROBE_EVERY_MS);
    }
    child.kill("SIGKILL");
    throw death.cause() ?? new Error(`${BINARY} did not answer within ${START_TIMEOUT_MS} ms`);
  }
}

/** Records why the process ended. */
function watch(child: ChildProcess): { cause(): Error | undefined } {
  running.add(child);
  let output = "";
  let cause: Error | undefined;
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding("utf8").on("data", (text: string) => {
      output = (output + text).slice(-4_000);
    });
  }
  child.once("error", (error: NodeJS.ErrnoException) => {
    running.delete(child);
    const hint = `there is no ${BINARY}: install it (apt-get install redis-server) or set HOLDFAST_REDIS_SERVER`;
    cause = error.code === "ENOENT" ? new Error(hint) : error;
  });
  child.once("exit", () => {
    running.delete(child);
    cause ??= new Error(`${BINARY} ended: ${output.trim()}`);
  });
  return { cause: () => cause };
}

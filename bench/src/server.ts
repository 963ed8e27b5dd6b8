/** A redis-server for one run, on a free loopback port and in its own directory, which is removed at the end. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Redis } from "ioredis";

const BINARY = process.env.HOLDFAST_REDIS_SERVER ?? "redis-server";
const START_TRIES = 5;
const PORTS = 65_536;
/** Many tries, because the system hands out ports from a wide range. */
const PORT_TRIES = 1_000;
const START_TIMEOUT_MS = 10_000;

/** Options of a server. */
export interface ServerOptions {
  /** Additional arguments of redis-server. */
  readonly args?: readonly string[];
  /** Upper bound of the port, exclusive. If absent, any port. */
  readonly belowPort?: number;
}

/** A running server. */
export interface Server {
  readonly pid: number;
  readonly port: number;
  readonly version: string;
  readonly isValkey: boolean;
  /** A connection for the benchmark's own commands, never used by a contestant. */
  readonly control: Redis;
  /** Ends the server and removes its directory. */
  stop(): Promise<void>;
}

/** Cleanups to run when this process exits. */
const ends = new Set<() => void>();
process.once("exit", () => {
  for (const end of ends) end();
});

/** Starts a server and waits until it replies. The server ends when this process does. */
export async function startServer({ args = [], belowPort = PORTS }: ServerOptions = {}): Promise<Server> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await startOn(await freePort(belowPort), args);
    } catch (error) {
      // Another process may have taken the port in between.
      if (tries === START_TRIES || !String(error).includes("Address already in use")) throw error;
    }
  }
}

/** Starts several independent servers. If one of them cannot be started, the others are stopped. */
export async function startServers(count: number, options: ServerOptions = {}): Promise<readonly Server[]> {
  const servers: Server[] = [];
  try {
    // One after the other, so that they do not take the same port.
    while (servers.length < count) servers.push(await startServer(options));
    return servers;
  } catch (error) {
    await stopAll(servers);
    throw error;
  }
}

/** Stops all of these servers. */
export async function stopAll(servers: readonly Server[]): Promise<void> {
  await Promise.all(servers.map((server) => server.stop()));
}

async function startOn(port: number, args: readonly string[]): Promise<Server> {
  const directory = mkdtempSync(join(tmpdir(), "holdfast-bench-"));
  const own = ["--port", `${port}`, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", directory];
  const flags = [...own, ...args];
  const child = spawn(BINARY, flags, { stdio: ["ignore", "pipe", "ignore"] });
  const end = (): void => {
    child.kill("SIGKILL");
    rmSync(directory, { recursive: true, force: true });
  };
  ends.add(end);

  const control = new Redis({ host: "127.0.0.1", port, lazyConnect: true, retryStrategy: () => null });
  control.on("error", () => {}); // errors that matter also reject a call
  try {
    await answering(child, control);
  } catch (error) {
    control.disconnect();
    ends.delete(end);
    end();
    throw error;
  }
  const info = await control.info("server");
  // Valkey reports its own version, and the version of Redis that it is compatible with.
  const valkey = /valkey_version:(\S+)/.exec(info)?.[1];
  const version = valkey ?? /redis_version:(\S+)/.exec(info)?.[1] ?? "unknown";
  return {
    pid: child.pid as number, // set, because the server has replied
    port,
    version,
    isValkey: valkey !== undefined,
    control,
    async stop() {
      control.disconnect();
      ends.delete(end);
      const exited = once(child, "exit");
      end();
      await exited;
    },
  };
}

async function answering(child: ChildProcess, control: Redis): Promise<void> {
  let failure: Error | undefined;
  let output = "";
  child.stdout?.setEncoding("utf8").on("data", (text: string) => {
    output = (output + text).slice(-2_000);
  });
  child.once("error", (error: NodeJS.ErrnoException) => {
    const hint = `there is no ${BINARY}: install it (apt-get install redis-server) or set HOLDFAST_REDIS_SERVER`;
    failure = error.code === "ENOENT" ? new Error(hint) : error;
  });
  child.once("exit", () => {
    failure ??= new Error(`${BINARY} exited immediately: ${output.trim()}`);
  });
  const giveUpAtMs = performance.now() + START_TIMEOUT_MS;
  while (failure === undefined && performance.now() < giveUpAtMs) {
    const isUp = await control.connect().then(
      () => true,
      () => false,
    );
    // If another server has taken the port, the reply may be from that server.
    if (isUp && (await control.info("server")).includes(`process_id:${child.pid}\r`)) return;
    if (isUp) control.disconnect();
    await sleep(10);
  }
  throw failure ?? new Error(`${BINARY} did not answer within ${START_TIMEOUT_MS} ms`);
}

async function freePort(below: number): Promise<number> {
  for (let tries = 0; tries < PORT_TRIES; tries += 1) {
    const probe = createServer().listen(0, "127.0.0.1");
    await once(probe, "listening");
    const address = probe.address();
    probe.close();
    await once(probe, "close");
    if (address !== null && typeof address !== "string" && address.port < below) return address.port;
  }
  throw new Error(`there is no free port below ${below}`);
}

/** Processor time that the server has used so far, in seconds. */
export async function processorOf(control: Redis): Promise<number> {
  return (await infoNumber(control, "cpu", "used_cpu_user")) + (await infoNumber(control, "cpu", "used_cpu_sys"));
}

/** A numeric field of INFO, or NaN if there is no such field. */
export async function infoNumber(control: Redis, section: string, field: string): Promise<number> {
  return Number(new RegExp(`^${field}:(\\S+)`, "m").exec(await control.info(section))?.[1] ?? Number.NaN);
}

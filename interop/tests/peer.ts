/**
 * Runs a service in another language and calls it from a test: a verb with its values is sent as a line of JSON, and
 * its reply is read.
 *
 * The test can freeze and kill the peer at any moment. Peers that still run end with the test process. The peer's
 * output to standard error is part of every failure.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { delimiter, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const HOME = fileURLToPath(new URL("..", import.meta.url));

/**
 * The releases of Redisson that the Java peers are built with; see scripts/peers.mjs. Before 3.22 it did not publish
 * to shards, and before 3.24.1 it had no latch.
 */
export const REDISSONS = ["4.7.0", "3.27.2", "3.21.3"] as const;

/** A release of Redisson. */
export type RedissonVersion = (typeof REDISSONS)[number];

/** How a peer process ended. */
export interface PeerEnd {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** An error in a verb of the peer; `kind` is the class of the peer's exception. */
export class PeerError extends Error {
  readonly kind: string;

  constructor(kind: string, message: string) {
    super(`${kind}: ${message}`);
    this.kind = kind;
  }
}

/** A running peer. */
export interface Peer {
  readonly pid: number;
  /** Resolves when the process has ended. */
  readonly ended: Promise<PeerEnd>;
  /** Its output to standard error so far. */
  readonly complaints: string;
  /** Calls a verb; see interop/README.md. @throws PeerError  the peer's own exception; Error: it ended first */
  call<Answer = boolean>(verb: string, values?: object): Promise<Answer>;
  /** SIGSTOP. */
  freeze(): void;
  /** SIGCONT. */
  resume(): void;
  /** SIGKILL, as a crash does; resolves when the process is gone, and its sockets with it. */
  kill(): Promise<PeerEnd>;
  /** Closes the peer's input so that it ends by itself; kills it if that takes too long. */
  stop(): Promise<PeerEnd>;
}

/** The server's address, and the error of the peer's clock. */
export interface ClockedSettings {
  readonly port: number;
  /** Negative values: behind. @default 0 */
  readonly clockAheadMs?: number;
  /** Stops the peer's clock at this time, for events within one second or millisecond. @default the clock runs */
  readonly clockAtMs?: number;
}

/**
 * Starts Java with Redisson. The verb `connect` creates any number of clients.
 *
 * @param clockAheadMs  how far Java's wall clock is ahead; negative: behind
 */
export function startRedisson(version: RedissonVersion = "4.7.0", clockAheadMs = 0): Peer {
  return startJava(version, "peers.RedissonPeer", clockAheadMs);
}

/**
 * Starts Java with Jedis and the locks of articles C and E. `create` and `uuid.create` create any number of lock
 * objects.
 */
export function startJedis(): Peer {
  return startJava("4.7.0", "peers.JedisPeer");
}

/** Starts PHP with the lock of article A. */
export function startArticleA(settings: ClockedSettings): Peer {
  return start("php", join(HOME, "peers/php/article-a.php"), JSON.stringify(settings));
}

/** Starts PHP with the lock of article B. */
export function startArticleB(settings: ClockedSettings): Peer {
  return start("php", join(HOME, "peers/php/article-b.php"), JSON.stringify(settings));
}

/** Starts C++ with the lock of article D. */
export function startArticleD({ port, clockAheadMs = 0, clockAtMs = 0 }: ClockedSettings): Peer {
  return start(built("cpp/article-d"), `${port}`, `${clockAheadMs}`, `${clockAtMs}`);
}

/** Starts Python with the Lock of redis-py. */
export function startRedisPy(port: number): Peer {
  const script = join(HOME, "peers/python/peer.py");
  return startWith({ PYTHONPATH: built("python") }, "python3", "-u", script, JSON.stringify({ port }));
}

/** Starts a shell script that uses SET NX PX. */
export function startShell(port: number): Peer {
  return start("sh", join(HOME, "peers/shell/set-nx.sh"), `${port}`);
}

function startJava(version: RedissonVersion, main: string, clockAheadMs = 0): Peer {
  const folder = built(`java-${version}`);
  const classes = [join(folder, "classes"), join(folder, "lib/*")].join(delimiter);
  // A peer runs for seconds, so JVM optimizations that take minutes to pay off only cost time.
  const java = ["java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx256m", "-cp", classes, main];
  if (clockAheadMs === 0) return start(...(java as [string, ...string[]]));
  // Shifts only the wall clock, because Java's own timers use the monotonic one.
  const offset = `${clockAheadMs < 0 ? "-" : "+"}${Math.abs(clockAheadMs) / 1_000}s`;
  return start("faketime", "--exclude-monotonic", "-f", offset, ...java);
}

function built(name: string): string {
  const path = join(HOME, "dist", name);
  if (!existsSync(path)) throw new Error(`the peer ${name} is not built; npm run test:interop builds it`);
  return path;
}

const running = new Set<ChildProcess>();
process.on("exit", () => {
  for (const child of running) child.kill("SIGKILL");
});

/** How long a peer may take to end by itself. */
const END_MS = 2_000;

interface Answer {
  readonly id: number;
  readonly ok: boolean;
  readonly value?: unknown;
  readonly error?: string;
  readonly message?: string;
}

interface Call {
  resolve(value: unknown): void;
  reject(error: Error): void;
}

function start(program: string, ...args: readonly string[]): Peer {
  return startWith({}, program, ...args);
}

function startWith(settings: NodeJS.ProcessEnv, program: string, ...args: readonly string[]): Peer {
  const child = spawn(program, args, { stdio: ["pipe", "pipe", "pipe"], env: { ...process.env, ...settings } });
  running.add(child);
  const calls = new Map<number, Call>();
  let lastId = 0;
  let complaints = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    complaints += text;
  });
  // The end of a peer is reported by its exit, not by errors of the pipe to it.
  child.stdin.on("error", () => {});
  createInterface({ input: child.stdout }).on("line", (line) => {
    const { id, ok, value, error = "", message = "" }: Answer = JSON.parse(line);
    const call = calls.get(id);
    calls.delete(id);
    if (ok) call?.resolve(value);
    else call?.reject(new PeerError(error, message));
  });
  const ended = new Promise<PeerEnd>((resolve) => {
    const onEnd = (code: number | null, signal: NodeJS.Signals | null, reason: string): void => {
      running.delete(child);
      for (const { reject } of calls.values()) reject(new Error(`${program} ended (${reason}): ${complaints.trim()}`));
      calls.clear();
      resolve({ code, signal });
    };
    child.once("error", (error) => onEnd(null, null, error.message));
    // Uses "close" instead of "exit", so that its remaining output is still read.
    child.once("close", (code, signal) => onEnd(code, signal, `${signal ?? code}`));
  });
  const isGone = (): boolean => !running.has(child);

  return {
    pid: child.pid as number,
    ended,
    get complaints() {
      return complaints;
    },
    call<Value>(verb: string, values: object = {}): Promise<Value> {
      lastId += 1;
      const id = lastId;
      return new Promise<Value>((resolve, reject) => {
        if (isGone()) {
          reject(new Error(`${program} has ended: ${complaints.trim()}`));
          return;
        }
        // The test that calls a verb knows the type of the reply.
        calls.set(id, { resolve: (value) => resolve(value as Value), reject });
        child.stdin.write(`${JSON.stringify({ id, verb, ...values })}\n`);
      });
    },
    freeze: () => void child.kill("SIGSTOP"),
    resume: () => void child.kill("SIGCONT"),
    kill() {
      child.kill("SIGKILL");
      return ended;
    },
    async stop() {
      child.stdin.end();
      const timer = setTimeout(() => child.kill("SIGKILL"), END_MS);
      const end = await ended;
      clearTimeout(timer);
      return end;
    },
  };
}

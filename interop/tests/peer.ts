/**
 * A service in another language, called from a test: a verb and its values go out as a line of JSON, its answer comes back.
 *
 * It can be frozen and killed at any moment, which is what it is for. What is still running ends with the test process, and
 * what a peer wrote to standard error is part of every failure.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { delimiter, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const HOME = fileURLToPath(new URL("..", import.meta.url));

/**
 * The releases of Redisson that the Java peers are built against; see scripts/peers.mjs. Before 3.22 it published to no shards,
 * before 3.24.1 it had no latch.
 */
export const REDISSONS = ["4.7.0", "3.27.2", "3.21.3"] as const;

/** Which Redisson. */
export type RedissonVersion = (typeof REDISSONS)[number];

/** How a process ended. */
export interface PeerEnd {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** A verb that the peer could not carry out: `kind` is the class of the exception that it met. */
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
  /** Resolves when the process is gone. */
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
  /** Lets it end by itself, by the end of its input; kills it if it is busy for longer. */
  stop(): Promise<PeerEnd>;
}

/** Where the server is, and how wrong the peer's clock is. */
export interface ClockedSettings {
  readonly port: number;
  /** Below 0: behind. @default 0 */
  readonly clockAheadMs?: number;
  /** A clock that stands still at this time, for what happens in one second or one millisecond. @default it runs */
  readonly clockAtMs?: number;
}

/**
 * Java with Redisson: any number of clients, made by the verb `connect`.
 *
 * @param clockAheadMs  how far the clock of that machine is ahead, from the view of Java; below 0: behind
 */
export function startRedisson(version: RedissonVersion = "4.7.0", clockAheadMs = 0): Peer {
  return startJava(version, "peers.RedissonPeer", clockAheadMs);
}

/** Java with Jedis and the locks of articles C and E. `create` and `uuid.create` make any number of lock objects. */
export function startJedis(): Peer {
  return startJava("4.7.0", "peers.JedisPeer");
}

/** PHP with the lock of article A. */
export function startArticleA(settings: ClockedSettings): Peer {
  return start("php", join(HOME, "peers/php/article-a.php"), JSON.stringify(settings));
}

/** PHP with the lock of article B. */
export function startArticleB(settings: ClockedSettings): Peer {
  return start("php", join(HOME, "peers/php/article-b.php"), JSON.stringify(settings));
}

/** C++ with the lock of article D. */
export function startArticleD({ port, clockAheadMs = 0, clockAtMs = 0 }: ClockedSettings): Peer {
  return start(built("cpp/article-d"), `${port}`, `${clockAheadMs}`, `${clockAtMs}`);
}

/** Python with the Lock of redis-py. */
export function startRedisPy(port: number): Peer {
  const script = join(HOME, "peers/python/peer.py");
  return startWith({ PYTHONPATH: built("python") }, "python3", "-u", script, JSON.stringify({ port }));
}

/** A shell script with SET NX PX. */
export function startShell(port: number): Peer {
  return start("sh", join(HOME, "peers/shell/set-nx.sh"), `${port}`);
}

function startJava(version: RedissonVersion, main: string, clockAheadMs = 0): Peer {
  const folder = built(`java-${version}`);
  const classes = [join(folder, "classes"), join(folder, "lib/*")].join(delimiter);
  // A peer lives for seconds, so JVM optimizations that pay off after minutes only cost time.
  const java = ["java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx256m", "-cp", classes, main];
  if (clockAheadMs === 0) return start(...(java as [string, ...string[]]));
  // The clock of the day alone: Java's own timers go by the other one.
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
  // A peer that is gone is told of by its end, not by the pipe to it.
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
    // "close", not "exit": what it said before it ended is still read.
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
        // The test that calls a verb knows what the peer answers.
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

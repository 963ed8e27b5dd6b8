/** Runs the verbs as child processes, on a separate server with locks that this process holds. */
import { type ChildProcess, spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { createHoldfast, type Holdfast, type Lease } from "holdfast";
import { Redis } from "ioredis";
import { afterAll, beforeAll, vi } from "vitest";
import { type RedisServer, startRedis } from "../../../../tests/support/redis-server.js";
import { until } from "../../../holdfast/src/testing/delays.js";

/** The path of the compiled command. */
export const MAIN: string = fileURLToPath(new URL("../../dist/main.js", import.meta.url));

// Starting a process can take very long on a busy machine, so use long timeouts. No test here measures time.
vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

/** How a call ended. */
export interface Said {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** A running call. */
export interface Going {
  readonly child: ChildProcess;
  readonly ended: Promise<Said>;
  stdout(): string;
}

/** A server, the command on it, and a Holdfast in this process. */
export interface Stage {
  readonly redis: RedisServer;
  readonly holdfast: Holdfast;
  /** Runs `holdfast` with these words, and waits for its end. */
  say(...words: readonly string[]): Promise<Said>;
  /** Like `say`, and parses the output as one document. */
  ask(...words: readonly string[]): Promise<Document>;
  /** Starts `holdfast` with these words. */
  start(...words: readonly string[]): Going;
  /** Creates another Holdfast in this process with a separate client. It is closed with the stage. */
  client(clientName: string): Holdfast;
  /** Resolves when the client waits in the queue. It then waits until it is granted or the stage closes. */
  queueUp(holdfast: Holdfast, name: string, label: string): Promise<{ readonly granted: Promise<Lease | undefined> }>;
}

/** A holder or waiter in a document. */
interface Person {
  readonly app: string | null;
  readonly owner: string;
  readonly token: number;
}

/** A lock in a document. */
interface Shown {
  readonly name: string;
  readonly kind: string;
  readonly holders: readonly Person[];
  readonly queue: readonly Person[];
}

/** The fields that tests read in the documents of all verbs. Each document has only some of them. */
export interface Document extends Shown {
  readonly locks: readonly Shown[];
  readonly alsoKinds: readonly Shown[];
  readonly history: readonly { readonly name: string; readonly outcome: string }[];
  readonly nextCursor: string | null;
  readonly conditions?: readonly { readonly name: string; readonly waiters: number }[];
  readonly next: Person;
  readonly term: number;
}

/** Creates the stage for one test file. */
export function newStage(): Stage {
  let redis: RedisServer;
  let holdfast: Holdfast;
  const clients: { holdfast: Holdfast; redis: Redis }[] = [];
  const running = new Set<ChildProcess>();
  const client = (clientName: string): Holdfast => {
    const connection = new Redis(redis.url);
    const made = createHoldfast({ redis: connection, clientName });
    clients.push({ holdfast: made, redis: connection });
    return made;
  };
  beforeAll(async () => {
    redis = await startRedis();
    holdfast = client("tests");
  });
  afterAll(async () => {
    for (const child of running) child.kill("SIGKILL");
    for (const one of clients) {
      await one.holdfast.close();
      one.redis.disconnect();
    }
    await redis.stop();
  });
  const start = (...words: readonly string[]): Going => {
    const env = { PATH: process.env.PATH, HOME: process.env.HOME, HOLDFAST_REDIS: redis.url };
    const child = spawn(process.execPath, [MAIN, ...words], { env, stdio: ["ignore", "pipe", "pipe"] });
    running.add(child);
    let stdout = "";
    let stderr = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      stdout += text;
    });
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      stderr += text;
    });
    const ended = new Promise<Said>((resolve) => {
      child.once("close", (code) => {
        running.delete(child);
        resolve({ code, stdout, stderr });
      });
    });
    return { child, ended, stdout: () => stdout };
  };
  const say = (...words: readonly string[]): Promise<Said> => start(...words).ended;
  return {
    get redis() {
      return redis;
    },
    get holdfast() {
      return holdfast;
    },
    start,
    say,
    client,
    async ask(...words) {
      const { code, stdout, stderr } = await say(...words, "--json");
      if (stdout === "") throw new Error(`it said nothing and exited with ${code}: ${stderr}`);
      return JSON.parse(stdout);
    },
    async queueUp(waiter, name, label) {
      const before = (await holdfast.mutex(name).inspect()).waiterCount;
      const granted = waiter
        .mutex(name)
        .acquire({ waitMs: Number.POSITIVE_INFINITY, label })
        .catch(() => undefined);
      await until(async () => (await holdfast.mutex(name).inspect()).waiterCount > before, `${label} waits`);
      return { granted };
    },
  };
}

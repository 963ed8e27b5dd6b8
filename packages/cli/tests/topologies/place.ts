/** The command on some topology, as a shell calls it, beside a Holdfast of this process. */
import { createHoldfast, type Holdfast } from "holdfast";
import type { Cluster, Redis } from "ioredis";
import { vi } from "vitest";
import { type Ended, holdfast, type Running, start } from "../support/command.js";

// Starting a process takes a machine that is busy many times as long; nothing here is measured.
vi.setConfig({ testTimeout: 180_000, hookTimeout: 180_000 });

/** What tests look into of the documents of all verbs; which of it is there is what they test. */
export interface Document {
  readonly locks: readonly { readonly name: string; readonly holders: readonly object[] }[];
  /** Of the console. */
  readonly rows: readonly { readonly name: string }[];
  readonly nextCursor: string | null;
  readonly unreachable: number;
  readonly history: readonly { readonly name: string; readonly outcome: string }[];
  readonly checks: readonly { readonly id: string; readonly node: string; readonly status: string }[];
  readonly term: number;
}

/** Servers that belong together, and how to call the command on them. */
export interface Place {
  /** Of this process, by the name of `tests`. */
  readonly holdfast: Holdfast;
  /** Runs `holdfast` with these words to its end. */
  say(...words: readonly string[]): Promise<Ended>;
  /** As `say` with `--json`, and reads what it printed as one document. */
  ask(...words: readonly string[]): Promise<Document>;
  /** Starts it. */
  start(...words: readonly string[]): Running;
  close(): Promise<void>;
}

/** What a kind of servers is called by, and how they are reached. */
export interface PlaceFacts {
  readonly ports: readonly number[];
  /** `HOLDFAST_CLUSTER` and the like. */
  readonly env: Readonly<Record<string, string>>;
  /** Connected clients: one, or one for each of several independent servers. */
  readonly clients: readonly (Redis | Cluster)[];
  readonly isQuorum?: boolean;
  stop(): Promise<void>;
}

/** Makes it. */
export function placeOf({ ports, env: own, clients, isQuorum = false, stop }: PlaceFacts): Place {
  const env = {
    HOLDFAST_REDIS: ports.map((port) => `redis://127.0.0.1:${port}`).join(" "),
    // However busy the machine is, what is tested is not how soon servers answer.
    HOLDFAST_COMMAND_TIMEOUT: "30s",
    HOLDFAST_CONNECT_TIMEOUT: "60s",
    ...own,
  };
  // Without a listener they print what they cannot reach, and one of several may be ended on purpose.
  for (const client of clients) client.on("error", () => {});
  const shared = { clientName: "tests", commandTimeoutMs: 30_000 };
  const beside = isQuorum
    ? createHoldfast({ redlock: clients, ...shared })
    : createHoldfast({ redis: clients[0] as Redis | Cluster, ...shared });
  return {
    holdfast: beside,
    say: (...words) => holdfast(words, env),
    async ask(...words) {
      const { stdout, stderr, code } = await holdfast([...words, "--json"], env);
      if (stdout === "") throw new Error(`it said nothing and exited with ${code}: ${stderr}`);
      return JSON.parse(stdout);
    },
    start: (...words) => start(words, env),
    async close() {
      await beside.close();
      for (const client of clients) client.disconnect();
      await stop();
    },
  };
}

/** The addresses of servers on this machine, as the doctor names them, in order. */
export function nodesAt(ports: readonly number[]): string[] {
  return ports.map((port) => `127.0.0.1:${port}`).toSorted();
}

/** Starts the console on a free port, asks it, and ends it with TERM. @returns what it answered, and its exit code */
export async function throughConsole(place: Place, path: string): Promise<{ answer: Document; code: number | null }> {
  const going = place.start("console", "-p", "0", "--json");
  await vi.waitFor(
    () => {
      if (going.child.exitCode !== null) throw new Error(`it ended: ${going.stderr()}`);
      if (!going.stdout().includes("\n")) throw new Error("no address yet");
    },
    { timeout: 120_000, interval: 20 },
  );
  const { url, token } = JSON.parse(going.stdout());
  const ask = (): Promise<Response> => fetch(`${url}${path}`, { headers: { authorization: `Bearer ${token}` } });
  // Until it is connected it says that Redis is down.
  const response = await vi.waitUntil(async () => {
    const one = await ask();
    return one.status === 503 ? undefined : one;
  }, 120_000);
  const answer = (await response.json()) as Document;
  going.signal("SIGTERM");
  return { answer, code: (await going.ended).code };
}

/** Runs the command on any topology, together with a Holdfast in this process. */
import { createHoldfast, type Holdfast } from "holdfast";
import type { Cluster, Redis } from "ioredis";
import { vi } from "vitest";
import { type Ended, holdfast, type Running, start } from "../support/command.js";

// Starting a process can take very long on a busy machine, so use long timeouts. No test here measures time.
vi.setConfig({ testTimeout: 180_000, hookTimeout: 180_000 });

/** The fields that tests read in the documents of all verbs. Each document has only some of them. */
export interface Document {
  readonly locks: readonly { readonly name: string; readonly holders: readonly object[] }[];
  /** Fields of the console. */
  readonly rows: readonly { readonly name: string }[];
  readonly nextCursor: string | null;
  readonly unreachable: number;
  readonly history: readonly { readonly name: string; readonly outcome: string }[];
  readonly checks: readonly { readonly id: string; readonly node: string; readonly status: string }[];
  readonly term: number;
  readonly deadlocks: readonly object[];
}

/** Servers that work together, and how to run the command on them. */
export interface Place {
  /** The Holdfast of this process, with the client name `tests`. */
  readonly holdfast: Holdfast;
  /** Runs `holdfast` with these words, and waits for its end. */
  say(...words: readonly string[]): Promise<Ended>;
  /** Like `say` with `--json`, and parses the output as one document. */
  ask(...words: readonly string[]): Promise<Document>;
  /** Starts `holdfast` with these words. */
  start(...words: readonly string[]): Running;
  close(): Promise<void>;
}

/** How to reach the servers of one topology. */
export interface PlaceFacts {
  readonly ports: readonly number[];
  /** Variables such as `HOLDFAST_CLUSTER`. */
  readonly env: Readonly<Record<string, string>>;
  /** Connected clients: one, or with independent servers one for each server. */
  readonly clients: readonly (Redis | Cluster)[];
  readonly isQuorum?: boolean;
  stop(): Promise<void>;
}

/** Creates the place for these servers. */
export function placeOf({ ports, env: own, clients, isQuorum = false, stop }: PlaceFacts): Place {
  const env = {
    HOLDFAST_REDIS: ports.map((port) => `redis://127.0.0.1:${port}`).join(" "),
    // Long timeouts, because the tests do not check how fast servers reply on a busy machine.
    HOLDFAST_COMMAND_TIMEOUT: "30s",
    HOLDFAST_CONNECT_TIMEOUT: "60s",
    ...own,
  };
  // Without a listener, the clients would print connection errors. Some tests stop a server on purpose.
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

/** The addresses of servers on this machine, as the doctor prints them, in order. */
export function nodesAt(ports: readonly number[]): string[] {
  return ports.map((port) => `127.0.0.1:${port}`).toSorted();
}

/**
 * Starts the console on a free port, sends it a request, and ends it with TERM. @returns the response and the exit code
 */
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
  // Until the console is connected, it reports that Redis is down.
  const response = await vi.waitUntil(async () => {
    const one = await ask();
    return one.status === 503 ? undefined : one;
  }, 120_000);
  const answer = (await response.json()) as Document;
  going.signal("SIGTERM");
  return { answer, code: (await going.ended).code };
}

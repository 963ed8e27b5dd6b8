/**
 * Starts the copies of the order service in one of two ways: all in this process on one embedded keyspace, or each in a
 * separate process on one Redis. For the load, a copy is a URL in both cases.
 */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { embedded, Keyspace } from "@holdfast/embedded";
import { createHoldfast } from "holdfast";
import type { CopyOrders, CopyReady } from "./copy.js";
import { startOrderService } from "./order-service.js";

/** The services that the copies use, and whether they use the Idempotency-Key. */
export interface Surroundings {
  readonly gatewayUrl: string;
  readonly tableUrl: string;
  readonly withKey: boolean;
}

/** Running copies, `copy 1` first. */
export interface Copies {
  readonly urls: readonly string[];
  /** Ends one copy with SIGKILL and resolves when it has exited; absent if the copies share one process. */
  kill?(name: string): Promise<void>;
  close(): Promise<void>;
}

/** Starts the copies of one run. */
export type StartCopies = (surroundings: Surroundings) => Promise<Copies>;

const CLOSE_WITHIN_MS = 10_000;

/** Copies in this process, each with its own HTTP server and its own Holdfast on one embedded keyspace. */
export function copiesInProcess(count: number): StartCopies {
  return async ({ gatewayUrl, tableUrl, withKey }) => {
    const keyspace = new Keyspace();
    const copies = await Promise.all(
      names(count).map(async (name) => {
        const holdfast = withKey
          ? createHoldfast({ store: embedded({ keyspace }), clientName: `orders ${name}` })
          : undefined;
        const service = await startOrderService({ name, gatewayUrl, tableUrl, holdfast });
        return {
          url: service.url,
          async close() {
            await service.close();
            await holdfast?.close();
          },
        };
      }),
    );
    return {
      urls: copies.map((copy) => copy.url),
      async close() {
        await Promise.all(copies.map((copy) => copy.close()));
      },
    };
  };
}

/**
 * Copies in separate processes (copy.ts), each with its own Redis connection.
 *
 * @param prefix  prefix of all keys of this demo, so that two demos on one Redis do not interfere
 */
export function copiesInProcesses(count: number, redisUrl: string, prefix: string): StartCopies {
  return async ({ gatewayUrl, tableUrl, withKey }) => {
    const children = names(count).map((name) => {
      const child = fork(new URL("./copy.js", import.meta.url));
      const orders: CopyOrders = { name, gatewayUrl, tableUrl, redisUrl, prefix, withKey };
      child.send(orders);
      return { name, child };
    });
    const close = async (): Promise<void> => {
      await Promise.all(children.map(({ child }) => end(child)));
    };
    try {
      return {
        urls: await Promise.all(children.map(({ name, child }) => ready(name, child))),
        async kill(name) {
          const child = children.find((entry) => entry.name === name)?.child;
          if (child === undefined || !isRunning(child)) return;
          const gone = once(child, "exit");
          child.kill("SIGKILL");
          await gone;
        },
        close,
      };
    } catch (error) {
      await close();
      throw error;
    }
  };
}

function names(count: number): string[] {
  return Array.from({ length: count }, (_, index) => `copy ${index + 1}`);
}

async function ready(name: string, child: ChildProcess): Promise<string> {
  return await new Promise((resolve, reject) => {
    child.once("message", (message) => resolve((message as CopyReady).url));
    child.once("exit", (code, signal) => reject(new Error(`${name} ended before it was ready (${signal ?? code})`)));
  });
}

/** Closes the channel, which asks the copy to finish. Kills the copy if it does not. */
async function end(child: ChildProcess): Promise<void> {
  if (!isRunning(child)) return;
  const gone = once(child, "exit");
  const impatience = setTimeout(() => child.kill("SIGKILL"), CLOSE_WITHIN_MS);
  if (child.connected) child.disconnect();
  await gone;
  clearTimeout(impatience);
}

function isRunning(child: ChildProcess): boolean {
  return child.exitCode === null && child.signalCode === null;
}

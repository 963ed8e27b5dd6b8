/**
 * A worker of the demo as a separate process. The demo starts `holdfast demo` again with a message channel. The worker
 * ends when its parent ends, so no worker is left behind.
 */
import type { CommonFlags } from "../frame/flags.js";
import type { Shop } from "./shop.js";
import { startWorker, type Worker, type WorkerEvent } from "./worker.js";

/** Messages from the demo to a worker. */
export type ToWorker =
  | { readonly type: "start"; readonly common: CommonFlags; readonly withLock: boolean }
  | { readonly type: "press"; readonly payment: string }
  | { readonly type: "answer"; readonly id: number; readonly value: unknown }
  | { readonly type: "close" };

/** Messages from a worker to the demo. */
export type FromWorker =
  | { readonly type: "listening" }
  | { readonly type: "ready" }
  | { readonly type: "event"; readonly event: WorkerEvent }
  | { readonly type: "call"; readonly id: number; readonly verb: keyof Shop; readonly args: readonly unknown[] };

let worker: Worker | undefined;
let closeConnection = async (): Promise<void> => {};
let lastId = 0;
const answers = new Map<number, (value: unknown) => void>();

/** The variable that the demo sets for the processes that it starts. */
export const WORKER_VARIABLE = "HOLDFAST_DEMO_WORKER";

/** Works until the demo sends `close` or disappears, and then ends the process. */
export function workForParent(): Promise<never> {
  process.on("message", (message) => {
    const order = message as ToWorker; // only the demo sends messages
    if (order.type === "start") void start(order);
    else if (order.type === "press") worker?.press(order.payment);
    else if (order.type === "close") void close();
    else {
      answers.get(order.id)?.(order.value);
      answers.delete(order.id);
    }
  });
  process.once("disconnect", () => process.exit(0));
  // A terminal sends these signals to the whole process group. Ignore them, because the parent decides what they mean.
  process.on("SIGINT", () => {});
  process.on("SIGHUP", () => {});
  say({ type: "listening" });
  return new Promise(() => {});
}

async function start({ common, withLock }: Extract<ToWorker, { type: "start" }>): Promise<void> {
  // Import on demand, because the parent loads this module only for its types and the variable name.
  const { connect } = await import("../frame/connect.js");
  const connection = withLock ? await connect("demo", common, {}) : undefined;
  closeConnection = async () => await connection?.close();
  worker = startWorker(connection?.holdfast, remoteShop(), (event) => say({ type: "event", event }));
  say({ type: "ready" });
}

async function close(): Promise<void> {
  await worker?.close();
  await closeConnection();
  process.exit(0);
}

function remoteShop(): Shop {
  const ask = (verb: keyof Shop, ...args: readonly unknown[]): Promise<unknown> =>
    new Promise((resolve) => {
      lastId += 1;
      answers.set(lastId, resolve);
      say({ type: "call", id: lastId, verb, args });
    });
  return {
    hasOrder: async (payment) => (await ask("hasOrder", payment)) === true,
    charge: async (payment) => void (await ask("charge", payment)),
    writeOrder: async (payment, token) => (await ask("writeOrder", payment, token ?? null)) === true,
    pullFeed: async (term) => (await ask("pullFeed", term)) === true,
  };
}

function say(message: FromWorker): void {
  process.send?.(message);
}

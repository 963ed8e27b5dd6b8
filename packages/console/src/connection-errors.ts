/**
 * Records why connections are down. A command on a broken connection only times out; the cause, such as ECONNREFUSED,
 * is reported as an event of the client.
 */
import { errorMonitor } from "node:events";
import type { ServerClient } from "./backend.js";

/** The last connection error of each watched client. */
export class ConnectionErrors {
  /** For each client, the function that removes its listeners. */
  readonly #watched = new Map<ServerClient, () => void>();
  readonly #errors = new Map<ServerClient, unknown>();

  /** The last error of a client that has not reconnected since; undefined if there is none. */
  get last(): unknown {
    return [...this.#errors.values()].at(-1);
  }

  /** Watches these clients, and stops watching all others. */
  watch(clients: readonly ServerClient[]): void {
    for (const [client, stop] of this.#watched) if (!clients.includes(client)) stop();
    for (const client of clients) if (!this.#watched.has(client)) this.#listenTo(client);
  }

  #listenTo(client: ServerClient): void {
    const onError = (error?: unknown): void => {
      this.#errors.delete(client);
      this.#errors.set(client, error);
    };
    const onReady = (): void => void this.#errors.delete(client);
    // `errorMonitor` does not count as an `error` listener, so the client still prints unhandled errors as before.
    client.on?.(errorMonitor, onError);
    client.on?.("ready", onReady);
    this.#watched.set(client, () => {
      client.off?.(errorMonitor, onError);
      client.off?.("ready", onReady);
      this.#watched.delete(client);
      this.#errors.delete(client);
    });
  }
}

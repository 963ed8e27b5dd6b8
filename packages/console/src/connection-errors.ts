/**
 * Why connections are down. A command that was sent in vain only times out; the reason, such as ECONNREFUSED, is an event of the
 * client.
 */
import { errorMonitor } from "node:events";
import type { ServerClient } from "./backend.js";

/** See the file header. */
export class ConnectionErrors {
  /** By client, what ends listening to it. */
  readonly #watched = new Map<ServerClient, () => void>();
  readonly #errors = new Map<ServerClient, unknown>();

  /** The last error of a client that has not connected again since; undefined if there is none. */
  get last(): unknown {
    return [...this.#errors.values()].at(-1);
  }

  /** Listens to these clients, and no longer to others. */
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
    // A listener of `errorMonitor` is none of `error`: whether the client prints its errors stays as it was.
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

import type { Inbox } from "holdfast";
import { type Bytes, toBytes, toText } from "./bytes.js";
import type { Server, Subscriber } from "./server.js";

/** The error for a request or subscription whose connection was lost before the reply arrived. */
export class ConnectionLostError extends Error {
  override readonly name = "ConnectionLostError";
}

type Listener = (message: string) => void;

/**
 * One connection of a client. It reconnects when it is dropped.
 *
 * Each request runs as one task, and its reply as another. Requests from a dropped connection still arrive at the
 * server, but their replies do not arrive at the client.
 */
export class Connection {
  readonly #server: Server;
  readonly #onReady: () => void;
  readonly #listeners = new Map<Bytes, Set<Listener>>();
  /** The `reject` function of each request without a reply. */
  readonly #pending = new Set<(error: ConnectionLostError) => void>();
  #subscriber: Subscriber = this.#newSubscriber();

  /** @param onReady  called each time the connection is established and subscribed again after a drop */
  constructor(server: Server, onReady: () => void) {
    this.#server = server;
    this.#onReady = onReady;
  }

  /**
   * Whether this connection has a subscription or is about to have one. If not, there is nothing to drop, because a
   * client opens its subscriber connection only when needed.
   */
  get isListening(): boolean {
    return this.#listeners.size > 0;
  }

  /**
   * Runs `work` on the server and resolves to its result.
   *
   * @throws ConnectionLostError  the connection was dropped; `work` still runs or has run
   * @throws the error that `work` throws
   */
  request<Result>(work: () => Result): Promise<Result> {
    const { scheduler } = this.#server;
    return new Promise((resolve, reject) => {
      this.#pending.add(reject);
      scheduler.schedule(() => {
        const answer = outcomeOf(work);
        scheduler.schedule(() => {
          if (!this.#pending.delete(reject)) return;
          if ("error" in answer) reject(answer.error);
          else resolve(answer.result);
        });
      });
    });
  }

  /**
   * Subscribes to a channel. Resolves when the server counts this connection as a subscriber.
   *
   * @throws ConnectionLostError  the connection was dropped before the server confirmed the subscription
   */
  async listen(channelText: string, onMessage: Listener): Promise<Inbox> {
    const channel = toBytes(channelText);
    // The callback is wrapped in a new function, because the same function may subscribe twice.
    const listener: Listener = (message) => onMessage(message);
    const listeners = this.#listeners.get(channel) ?? new Set();
    this.#listeners.set(channel, listeners.add(listener));
    try {
      await this.request(() => this.#subscribe(channel));
    } catch (error) {
      this.#forget(channel, listener);
      throw error;
    }
    return { close: async () => this.#forget(channel, listener) };
  }

  /** Breaks the connection and opens a new one. */
  drop(): void {
    this.#disconnect();
    for (const giveUp of this.#pending) giveUp(new ConnectionLostError("the connection was lost"));
    this.#pending.clear();
    const subscriber = this.#newSubscriber();
    this.#subscriber = subscriber;
    this.#server.scheduler.schedule(() => {
      if (this.#subscriber !== subscriber) return; // the new connection was dropped too
      for (const channel of this.#listeners.keys()) this.#subscribe(channel);
      this.#server.scheduler.schedule(() => {
        if (this.#subscriber === subscriber) this.#onReady();
      });
    });
  }

  /** Ends all subscriptions permanently. */
  end(): void {
    this.#disconnect();
    this.#listeners.clear();
  }

  #subscribe(channel: Bytes): void {
    // The subscription may have been closed before the request arrived.
    if (this.#listeners.has(channel)) this.#server.subscribe(channel, this.#subscriber);
  }

  #forget(channel: Bytes, listener: Listener): void {
    const listeners = this.#listeners.get(channel);
    listeners?.delete(listener);
    if (listeners?.size !== 0) return;
    this.#listeners.delete(channel);
    this.#server.scheduler.schedule(() => {
      // A new subscription to the channel may exist, and its request may have arrived before this one.
      if (!this.#listeners.has(channel)) this.#server.unsubscribe(channel, this.#subscriber);
    });
  }

  #disconnect(): void {
    for (const channel of this.#listeners.keys()) this.#server.unsubscribe(channel, this.#subscriber);
  }

  #newSubscriber(): Subscriber {
    const subscriber: Subscriber = {
      deliver: (channel, message) => {
        // A message is lost if its connection has been dropped in the meantime.
        if (this.#subscriber !== subscriber) return;
        for (const listener of [...(this.#listeners.get(channel) ?? [])]) listener(toText(message));
      },
    };
    return subscriber;
  }
}

type Answer<Result> = { readonly result: Result } | { readonly error: unknown };

function outcomeOf<Result>(work: () => Result): Answer<Result> {
  try {
    return { result: work() };
  } catch (error) {
    return { error };
  }
}

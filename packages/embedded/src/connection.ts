import type { Inbox } from "holdfast";
import { type Bytes, toBytes, toText } from "./bytes.js";
import type { Server, Subscriber } from "./server.js";

/** Why a request was given up. */
export class ConnectionLostError extends Error {
  override readonly name = "ConnectionLostError";
}

type Listener = (message: string) => void;

/**
 * One connection of a client, which comes back when it is dropped.
 *
 * A request is a task on its way there and another on its way back. Requests of a dropped connection still arrive,
 * and their answers do not.
 */
export class Connection {
  readonly #server: Server;
  readonly #onReady: () => void;
  readonly #listeners = new Map<Bytes, Set<Listener>>();
  /** How to give up each request that has no answer yet. */
  readonly #pending = new Set<(error: ConnectionLostError) => void>();
  #subscriber: Subscriber = this.#newSubscriber();

  /** @param onReady  called each time it is connected and subscribed again */
  constructor(server: Server, onReady: () => void) {
    this.#server = server;
    this.#onReady = onReady;
  }

  /** Whether it has, or is about to have, a subscription. A client connects for that only when it needs one. */
  get isListening(): boolean {
    return this.#listeners.size > 0;
  }

  /** Lets the server do `work`, and resolves with what comes of it. */
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

  /** Subscribes to a channel; resolves when the server counts this connection as a receiver. */
  async listen(channelText: string, onMessage: Listener): Promise<Inbox> {
    const channel = toBytes(channelText);
    // Wrapped, so that one function may listen twice.
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

  /** The connection breaks, and a new one is made. */
  drop(): void {
    this.#disconnect();
    for (const giveUp of this.#pending) giveUp(new ConnectionLostError("the connection was lost"));
    this.#pending.clear();
    const subscriber = this.#newSubscriber();
    this.#subscriber = subscriber;
    this.#server.scheduler.schedule(() => {
      if (this.#subscriber !== subscriber) return; // dropped again meanwhile
      for (const channel of this.#listeners.keys()) this.#subscribe(channel);
      this.#server.scheduler.schedule(() => {
        if (this.#subscriber === subscriber) this.#onReady();
      });
    });
  }

  /** Stops listening for good. */
  end(): void {
    this.#disconnect();
    this.#listeners.clear();
  }

  #subscribe(channel: Bytes): void {
    // Whoever asked may have stopped listening while the request was on its way.
    if (this.#listeners.has(channel)) this.#server.subscribe(channel, this.#subscriber);
  }

  #forget(channel: Bytes, listener: Listener): void {
    const listeners = this.#listeners.get(channel);
    listeners?.delete(listener);
    if (listeners?.size !== 0) return;
    this.#listeners.delete(channel);
    this.#server.scheduler.schedule(() => {
      // Somebody may listen again meanwhile, and the network may have let them overtake.
      if (!this.#listeners.has(channel)) this.#server.unsubscribe(channel, this.#subscriber);
    });
  }

  #disconnect(): void {
    for (const channel of this.#listeners.keys()) this.#server.unsubscribe(channel, this.#subscriber);
  }

  #newSubscriber(): Subscriber {
    const subscriber: Subscriber = {
      deliver: (channel, message) => {
        // What was on its way to a connection that has broken since is lost.
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

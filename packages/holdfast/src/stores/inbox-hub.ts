/**
 * One subscriber connection for all inboxes of a store, or of all stores that share a client. It is opened for the
 * first inbox.
 *
 * The hub guarantees that either a confirmed inbox receives every message, or its owner is notified (via `onReconnect`)
 * once the inbox is subscribed again. So after each reconnect the hub subscribes by itself and waits for the server's
 * confirmation, instead of relying on the client library to do so in time.
 */

import { LockError } from "../core/errors.js";
import { outsideRequests } from "../core/runtime.js";
import type { Inbox } from "../core/store.js";
import { ForbiddenChannels, notRun } from "./failure.js";
import { within } from "./timeout.js";

/** Delay before a lost connection is reopened, in ms, if the client library does not reconnect by itself. */
const REOPEN_MS = 500;
/**
 * A connection younger than this is not replaced again. Several stores may share it, and each may still report that the
 * previous connection was dead.
 */
export const YOUNG_MS = 5_000;
const NOBODY = new Error("the subscriber connection was closed");

/** Placeholder for `opening` until the connection starts to open. */
const NEVER: Promise<never> = new Promise(() => {});

/** A subscriber connection, independent of the client library. */
export interface Subscriber {
  /** Resolves when the server has confirmed all channels. Must be safe to repeat. */
  subscribe(channels: readonly string[]): Promise<unknown>;
  unsubscribe(channel: string): Promise<unknown>;
  /** Only on a cluster client: makes it look up which server has the slot of the channel. */
  refresh?(channel: string): Promise<unknown>;
  close(): unknown;
}

/** Events of a subscriber connection. */
export interface SubscriberEvents {
  /** Whether the channel is a sharded channel of a cluster. If absent, no channel is. */
  isSharded?(channel: string): boolean;
  onMessage(channel: string, message: string): void;
  /** The connection is ready for use. Called again after each reconnect. */
  onReady(): void;
  /** The connection is lost and will not reconnect. */
  onEnd(): void;
}

/** One connection, from the moment it starts to open. */
interface Line {
  opening: Promise<Subscriber>;
  subscriber: Subscriber | undefined;
  isGone: boolean;
}

interface Channel {
  readonly listeners: Set<(message: string) => void>;
  isConfirmed: boolean;
}

/** Opens inboxes over one connection. Calls `onReconnect` when they are subscribed again after a loss. */
export class InboxHub {
  readonly #openSubscriber: (events: SubscriberEvents) => Subscriber | Promise<Subscriber>;
  readonly #onReconnect: () => void;
  readonly #channels = new Map<string, Channel>();
  /**
   * Unsubscriptions in progress, by channel. A new subscription to the same channel on the same connection waits for
   * them. Those on a replaced connection may never get a reply, and do not affect the new connection.
   */
  readonly #leaving = new Map<string, { readonly line: Line | undefined; readonly done: Promise<void> }>();
  #line: Line | undefined;
  #replacing: Promise<void> | undefined;
  #replacedAtMs = -Infinity;
  #reopenTimer: NodeJS.Timeout | undefined;
  readonly #forbidden = new ForbiddenChannels();
  #isClosed = false;

  constructor(openSubscriber: (events: SubscriberEvents) => Subscriber | Promise<Subscriber>, onReconnect: () => void) {
    this.#openSubscriber = openSubscriber;
    this.#onReconnect = onReconnect;
  }

  /** See `Store.inbox`. */
  async open(name: string, onMessage: (message: string) => void, timeoutMs: number): Promise<Inbox> {
    // Register the listener before subscribing, so that it receives the first message after the confirmation.
    const channel = this.#channels.get(name) ?? { listeners: new Set(), isConfirmed: false };
    this.#channels.set(name, channel);
    // Wrapped in a new function, because the same callback may be registered twice.
    const listener = (message: string): void => onMessage(message);
    channel.listeners.add(listener);
    try {
      await within(timeoutMs, this.#subscribe([name]));
      channel.isConfirmed = true;
    } catch (cause) {
      void this.#leave(name, channel, listener);
      if (cause instanceof LockError) throw cause;
      throw notRun(name, cause, !this.#isClosed, this.#forbidden.warn(cause, name));
    }
    return {
      reopen: (timeoutMs) => this.#reopen(timeoutMs),
      close: () => within(timeoutMs, this.#leave(name, channel, listener)).catch(() => {}),
    };
  }

  /** Makes a cluster client look up which server has the slot of the channel. */
  async refresh(name: string): Promise<void> {
    await this.#line?.subscriber?.refresh?.(name);
  }

  /** Closes the connection. A second call does nothing. */
  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#reopenTimer);
    this.#channels.clear();
    const line = this.#line;
    this.#line = undefined;
    // A connection that is still opening is closed once it is open. Opening may take forever, so do not wait for it.
    await line?.subscriber?.close();
  }

  async #subscribe(names: readonly string[]): Promise<void> {
    for (;;) {
      if (this.#isClosed) throw NOBODY;
      const line = this.#line ?? newLine();
      if (this.#line === undefined) {
        this.#line = line;
        this.#open(line);
      }
      await this.#subscribeOn(line, names);
      // Repeat if the connection was replaced in the meantime.
      if (this.#line === line || this.#line === undefined) return;
    }
  }

  async #subscribeOn(line: Line, names: readonly string[]): Promise<void> {
    const subscriber = await line.opening;
    for (const name of names) {
      const leaving = this.#leaving.get(name);
      if (leaving?.line === line) await leaving.done;
    }
    if (names.length > 0) await subscriber.subscribe(names);
  }

  #open(line: Line): void {
    line.opening = outsideRequests(() => this.#connect(line));
  }

  async #connect(line: Line): Promise<Subscriber> {
    let subscriber: Subscriber;
    try {
      subscriber = await this.#openSubscriber({
        onMessage: (name, message) => {
          for (const listener of this.#channels.get(name)?.listeners ?? []) listener(message);
        },
        onReady: () => {
          if (this.#line === line) void this.#resubscribe();
        },
        onEnd: () => this.#drop(line),
      });
    } catch (cause) {
      this.#drop(line);
      throw cause;
    }
    line.subscriber = subscriber;
    if (line.isGone || this.#isClosed) closeQuietly(subscriber);
    return subscriber;
  }

  #drop(line: Line): void {
    if (line.isGone) return;
    line.isGone = true;
    closeQuietly(line.subscriber);
    if (this.#line !== line) return;
    this.#line = undefined;
    this.#reopenLater();
  }

  /** See `Inbox.reopen`. */
  #reopen(timeoutMs: number): Promise<void> {
    if (performance.now() - this.#replacedAtMs < YOUNG_MS) return Promise.resolve();
    this.#replacing ??= this.#replace(timeoutMs).finally(() => {
      this.#replacing = undefined;
    });
    return this.#replacing;
  }

  /** Subscribes on a new connection before closing the old one, so that the server always counts a subscriber. */
  async #replace(timeoutMs: number): Promise<void> {
    const line = newLine();
    const names = [...this.#channels.keys()];
    try {
      this.#open(line);
      await within(timeoutMs, this.#subscribeOn(line, names));
      if (line.isGone || this.#isClosed) throw NOBODY;
    } catch (cause) {
      this.#drop(line);
      throw cause;
    }
    const old = this.#line;
    this.#line = line;
    this.#replacedAtMs = performance.now();
    if (old !== undefined) this.#drop(old);
    // Some inboxes may have closed in the meantime. The server must not count a subscriber that no longer reads.
    for (const name of names) if (!this.#channels.has(name)) void this.#unsubscribe(name);
    await this.#resubscribe();
  }

  /** Subscribes again to all confirmed channels. A new inbox that is not confirmed yet subscribes by itself. */
  async #resubscribe(): Promise<void> {
    const confirmed = [...this.#channels].filter(([, channel]) => channel.isConfirmed).map(([name]) => name);
    if (confirmed.length === 0 || this.#isClosed) return;
    try {
      await this.#subscribe(confirmed);
    } catch {
      this.#reopenLater();
      return;
    }
    if (!this.#isClosed) this.#onReconnect();
  }

  #reopenLater(): void {
    if (this.#isClosed || this.#reopenTimer !== undefined) return;
    const reopen = (): void => {
      this.#reopenTimer = undefined;
      void this.#resubscribe();
    };
    this.#reopenTimer = outsideRequests(() => setTimeout(reopen, REOPEN_MS));
    // This timer must not keep the process alive: waiters have their own timers, and without waiters no notification is
    // needed.
    this.#reopenTimer.unref();
  }

  async #leave(name: string, channel: Channel, listener: (message: string) => void): Promise<void> {
    if (!channel.listeners.delete(listener) || channel.listeners.size > 0) return;
    if (this.#channels.get(name) === channel) this.#channels.delete(name);
    // Unsubscribe even if the subscription was not confirmed, so that the server does not count it.
    const leaving = { line: this.#line, done: this.#unsubscribe(name) };
    this.#leaving.set(name, leaving);
    await leaving.done;
    if (this.#leaving.get(name) === leaving) this.#leaving.delete(name);
  }

  async #unsubscribe(name: string): Promise<void> {
    try {
      await this.#line?.subscriber?.unsubscribe(name);
    } catch (cause) {
      // Usually the connection is gone, and the subscription with it. Only a missing permission causes a warning.
      this.#forbidden.warn(cause, name);
    }
  }
}

function newLine(): Line {
  return { opening: NEVER, subscriber: undefined, isGone: false };
}

function closeQuietly(subscriber: Subscriber | undefined): void {
  Promise.resolve(subscriber?.close()).catch(() => {});
}

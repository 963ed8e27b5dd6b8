/**
 * One listening connection for all inboxes of a store, opened at the first one.
 *
 * It keeps one promise: an inbox that was confirmed either hears every message, or its owner is told (by
 * `onReconnect`) once it hears again. So after each reconnect it subscribes itself and waits for the server's
 * confirmation, in place of trusting the client library to do so in time.
 */

import { LockError, StoreError } from "../core/errors.js";
import { outsideRequests } from "../core/runtime.js";
import type { Inbox } from "../core/store.js";
import { ForbiddenChannels } from "./forbidden.js";
import { within } from "./timeout.js";

/** How long after a failure a lost connection is opened anew, if the client library does not do it by itself. */
const REOPEN_MS = 500;
/** A connection younger than this is not replaced: several clients may share it, and each finds out by itself that the last one was dead. */
const YOUNG_MS = 5_000;
const NOBODY = new Error("the connection that listens was closed");

/** Of a connection that nobody has begun to open. */
const NEVER: Promise<never> = new Promise(() => {});

/** A connection that can only listen, in the words of every client library. */
export interface Subscriber {
  /** Resolves when the server has confirmed all of them. To subscribe once more must be harmless. */
  subscribe(channels: readonly string[]): Promise<unknown>;
  unsubscribe(channel: string): Promise<unknown>;
  /** Of a client of a cluster: has it find out where the slot of that channel is. */
  refresh?(channel: string): Promise<unknown>;
  close(): unknown;
}

/** What a listening connection reports. */
export interface SubscriberEvents {
  /** Asked about each channel: whether it is a sharded one of a cluster. Absent: none is. */
  isSharded?(channel: string): boolean;
  onMessage(channel: string, message: string): void;
  /** The connection can be used; called again after each reconnect. */
  onReady(): void;
  /** The connection is gone for good. */
  onEnd(): void;
}

/** One connection, from when it is being opened. */
interface Line {
  opening: Promise<Subscriber>;
  subscriber: Subscriber | undefined;
  isGone: boolean;
}

interface Channel {
  readonly listeners: Set<(message: string) => void>;
  isConfirmed: boolean;
}

/** Opens inboxes over one connection made by `openEar`, and tells `onReconnect` when they hear again after a loss. */
export class InboxHub {
  readonly #openSubscriber: (events: SubscriberEvents) => Subscriber | Promise<Subscriber>;
  readonly #onReconnect: () => void;
  readonly #channels = new Map<string, Channel>();
  /**
   * Unsubscriptions under way, by channel: who opens the same one again must not be overtaken by them. Those on a connection that was
   * replaced may never be answered, and overtake nobody on another one.
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

  /** As `Store.inbox`. */
  async open(name: string, onMessage: (message: string) => void, timeoutMs: number): Promise<Inbox> {
    // Listed before the server is asked, so that the first message after its confirmation finds a listener.
    const channel = this.#channels.get(name) ?? { listeners: new Set(), isConfirmed: false };
    this.#channels.set(name, channel);
    // A function of its own: the same callback may listen twice.
    const listener = (message: string): void => onMessage(message);
    channel.listeners.add(listener);
    try {
      await within(timeoutMs, this.#subscribe([name]));
      channel.isConfirmed = true;
    } catch (cause) {
      void this.#leave(name, channel, listener);
      if (cause instanceof LockError) throw cause;
      const missing = this.#forbidden.tell(cause, name);
      throw new StoreError(name, { mayHaveRun: false, transient: !this.#isClosed, cause, missingPermission: missing });
    }
    return {
      reopen: (timeoutMs) => this.#reopen(timeoutMs),
      close: () => within(timeoutMs, this.#leave(name, channel, listener)).catch(() => {}),
    };
  }

  /** Has the client of a cluster find out where the slot of that channel is. */
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
    // A connection that is still being made may take for ever; it is closed as soon as it is there.
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
      // It may have been replaced meanwhile.
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

  /** As `Inbox.reopen`. */
  #reopen(timeoutMs: number): Promise<void> {
    if (performance.now() - this.#replacedAtMs < YOUNG_MS) return Promise.resolve();
    this.#replacing ??= this.#replace(timeoutMs).finally(() => {
      this.#replacing = undefined;
    });
    return this.#replacing;
  }

  /** Subscribes on another connection before the old one is closed, so that the server counts a receiver all the time. */
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
    // Closed meanwhile: the server must not count a receiver that is none.
    for (const name of names) if (!this.#channels.has(name)) void this.#unsubscribe(name);
    await this.#resubscribe();
  }

  /** Subscribes to all that was heard before; a new inbox, not yet confirmed, looks after itself. */
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
    // Waiters have timers of their own; where nobody waits, nobody needs to hear.
    this.#reopenTimer.unref();
  }

  async #leave(name: string, channel: Channel, listener: (message: string) => void): Promise<void> {
    if (!channel.listeners.delete(listener) || channel.listeners.size > 0) return;
    if (this.#channels.get(name) === channel) this.#channels.delete(name);
    // Also where the subscription was not confirmed: the server must not count a receiver that is none.
    const leaving = { line: this.#line, done: this.#unsubscribe(name) };
    this.#leaving.set(name, leaving);
    await leaving.done;
    if (this.#leaving.get(name) === leaving) this.#leaving.delete(name);
  }

  async #unsubscribe(name: string): Promise<void> {
    try {
      await this.#line?.subscriber?.unsubscribe(name);
    } catch (cause) {
      // The connection is gone, and the subscription with it; unless it is not permitted.
      this.#forbidden.tell(cause, name);
    }
  }
}

function newLine(): Line {
  return { opening: NEVER, subscriber: undefined, isGone: false };
}

function closeQuietly(subscriber: Subscriber | undefined): void {
  Promise.resolve(subscriber?.close()).catch(() => {});
}

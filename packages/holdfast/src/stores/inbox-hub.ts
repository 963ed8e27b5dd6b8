/**
 * One listening connection for all inboxes of a store, opened at the first one.
 *
 * It keeps one promise: an inbox that was confirmed either hears every message, or its owner is told (by
 * `onReconnect`) once it hears again. So after each reconnect it subscribes itself and waits for the server's
 * confirmation, in place of trusting the client library to do so in time.
 */

import { LockError, StoreError } from "../core/errors.js";
import type { Inbox } from "../core/store.js";
import { within } from "./deadline.js";
import { ForbiddenChannels } from "./forbidden.js";

/** How long after a failure a lost connection is opened anew, if the client library does not do it by itself. */
const REOPEN_MS = 500;
const NOBODY = new Error("the connection that listens was closed");

/** A connection that can only listen, in the words of every client library. */
export interface Ear {
  /** Resolves when the server has confirmed all of them. To subscribe once more must be harmless. */
  subscribe(channels: readonly string[]): Promise<unknown>;
  unsubscribe(channel: string): Promise<unknown>;
  /** Of a client of a cluster: has it find out where the slot of that channel is. */
  refresh?(channel: string): Promise<unknown>;
  close(): unknown;
}

/** What a listening connection reports. */
export interface EarEvents {
  /** Asked about each channel: whether it is a sharded one of a cluster. Absent: none is. */
  isSharded?(channel: string): boolean;
  onMessage(channel: string, message: string): void;
  /** The connection can be used; called again after each reconnect. */
  onReady(): void;
  /** The connection is gone for good. */
  onEnd(): void;
}

interface Channel {
  readonly listeners: Set<(message: string) => void>;
  isConfirmed: boolean;
}

/** Opens inboxes over one connection made by `openEar`, and tells `onReconnect` when they hear again after a loss. */
export class InboxHub {
  readonly #openEar: (events: EarEvents) => Ear | Promise<Ear>;
  readonly #onReconnect: () => void;
  readonly #channels = new Map<string, Channel>();
  /** Unsubscriptions under way, by channel: who opens the same one again must not be overtaken by them. */
  readonly #leaving = new Map<string, Promise<void>>();
  #opening: Promise<Ear> | undefined;
  #ear: Ear | undefined;
  #reopenTimer: NodeJS.Timeout | undefined;
  readonly #forbidden = new ForbiddenChannels();
  #isClosed = false;

  constructor(openEar: (events: EarEvents) => Ear | Promise<Ear>, onReconnect: () => void) {
    this.#openEar = openEar;
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
    return { close: () => within(timeoutMs, this.#leave(name, channel, listener)).catch(() => {}) };
  }

  /** Closes the connection. A second call does nothing. */
  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#reopenTimer);
    this.#channels.clear();
    const ear = this.#ear;
    this.#ear = this.#opening = undefined;
    // A connection that is still being made may take for ever; it is closed as soon as it is there.
    await ear?.close();
  }

  async #subscribe(names: readonly string[]): Promise<void> {
    if (this.#isClosed) throw NOBODY;
    this.#opening ??= this.#connect();
    const ear = await this.#opening;
    for (const name of names) await this.#leaving.get(name);
    await ear.subscribe(names);
  }

  async #connect(): Promise<Ear> {
    let ear: Ear | undefined;
    let isCurrent = true;
    const drop = (): void => {
      if (!isCurrent) return;
      isCurrent = false;
      this.#ear = this.#opening = undefined;
      closeQuietly(ear);
      this.#reopenLater();
    };
    try {
      ear = await this.#openEar({
        onMessage: (name, message) => {
          for (const listener of this.#channels.get(name)?.listeners ?? []) listener(message);
        },
        onReady: () => {
          if (isCurrent) void this.#resubscribe();
        },
        onEnd: drop,
      });
    } catch (cause) {
      drop();
      throw cause;
    }
    if (isCurrent && !this.#isClosed) this.#ear = ear;
    else closeQuietly(ear);
    return ear;
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
    this.#reopenTimer = setTimeout(() => {
      this.#reopenTimer = undefined;
      void this.#resubscribe();
    }, REOPEN_MS);
    // Waiters have timers of their own; where nobody waits, nobody needs to hear.
    this.#reopenTimer.unref();
  }

  async #leave(name: string, channel: Channel, listener: (message: string) => void): Promise<void> {
    if (!channel.listeners.delete(listener) || channel.listeners.size > 0) return;
    if (this.#channels.get(name) === channel) this.#channels.delete(name);
    // Also where the subscription was not confirmed: the server must not count a receiver that is none.
    const leaving = this.#unsubscribe(name);
    this.#leaving.set(name, leaving);
    await leaving;
    if (this.#leaving.get(name) === leaving) this.#leaving.delete(name);
  }

  async #unsubscribe(name: string): Promise<void> {
    try {
      await this.#ear?.unsubscribe(name);
    } catch (cause) {
      // The connection is gone, and the subscription with it; unless it is not permitted.
      this.#forbidden.tell(cause, name);
    }
  }
}

function closeQuietly(ear: Ear | undefined): void {
  Promise.resolve(ear?.close()).catch(() => {});
}

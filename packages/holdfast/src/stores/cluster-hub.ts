/**
 * The inboxes of a store on a cluster: one subscriber connection for each master in use, and one for plain channels.
 *
 * `ClusterHub` gives the same guarantee as `InboxHub`: either a confirmed inbox receives every message, or its owner is
 * notified once the inbox is subscribed again. In a cluster, a channel moves when its slot moves or gets a new master.
 * The hub follows channels by itself, because client libraries do not report when they have moved a subscription.
 */

import { LockError } from "../core/errors.js";
import { outsideRequests } from "../core/runtime.js";
import type { Inbox } from "../core/store.js";
import { clusterSlot } from "./cluster-slot.js";
import { ForbiddenChannels, isUnknownCommand, notRun, refusesForGood } from "./failure.js";
import { YOUNG_MS } from "./inbox-hub.js";
import { unrefSleep, within } from "./timeout.js";

/** How long to wait for a confirmation before the hub tries another connection, in ms. */
const ANSWER_MS = 1_000;
/**
 * How often to check whether the client knows a new owner of a slot, in ms. Without this check, a subscription would
 * stay on a master that became a replica.
 */
const CHECK_MS = 250;
/** Number of checks per probe. A probe pings the server and makes the client look up the owner of a slot. */
const CHECKS_PER_PROBE = 8;
/**
 * First pause between attempts to follow a channel, in ms. It is doubled each time up to the longest pause: a moved
 * slot is available immediately, but a failover takes seconds.
 */
const FIRST_PAUSE_MS = 10;
const LONGEST_PAUSE_MS = 250;
/** How long to collect reconnected channels before `onReconnect` is called once for all of them. */
const GATHER_MS = 10;
const NOBODY = new Error("the channel no longer has any listeners");
const NO_OWNER = new Error("the client does not know the server of this slot");

/** A subscriber connection to one server of a cluster. */
export interface NodeSubscriber {
  /**
   * Resolves when the server has confirmed the subscription. Must be safe to repeat. Rejects if another server has the
   * slot.
   */
  subscribe(channel: string, isSharded: boolean): Promise<unknown>;
  unsubscribe(channel: string, isSharded: boolean): Promise<unknown>;
  ping(): Promise<unknown>;
  close(): unknown;
}

/** Events of a `NodeSubscriber`. */
export interface NodeSubscriberEvents {
  onMessage(channel: string, message: string): void;
  /** The server has ended some subscriptions, because their slots moved. */
  onMoved(): void;
  /** The connection is lost and will not reconnect by itself. */
  onEnd(): void;
}

/** What a client library knows about its cluster. */
export interface ClusterNodes {
  /** Address of the master that has the slot, as far as the client knows. */
  ownerOf(slot: number): string | undefined;
  masters(): readonly string[];
  /** Makes the client look up which server has the slot of the channel. */
  refresh(channel: string): Promise<unknown>;
  openSubscriber(address: string, events: NodeSubscriberEvents): NodeSubscriber | Promise<NodeSubscriber>;
}

interface Channel {
  readonly name: string;
  readonly isSharded: boolean;
  readonly slot: number;
  readonly listeners: Set<(message: string) => void>;
  /** False once its server turns out to be older than Redis 7, which introduced sharded channels. */
  isCounted: boolean;
  /** True if a confirmed subscription was lost. The owners of the inboxes must be notified when it is back. */
  isMissed: boolean;
  post: Post | undefined;
  /** The `channelKey` of the last post on which the server confirmed the subscription. */
  place: string;
  attaching: Promise<void> | undefined;
}

/** A subscriber connection to one server, and the channels that are subscribed on it. */
interface Post {
  readonly address: string;
  /**
   * A connection has either sharded or plain channels, never both: ioredis stops delivering messages when the last
   * channel of either type is unsubscribed.
   */
  readonly isSharded: boolean;
  readonly subscriber: Promise<NodeSubscriber>;
  readonly channels: Set<Channel>;
  watch: NodeJS.Timeout | undefined;
  isUp: boolean;
  /** When it replaced another connection, in ms on the monotonic clock; -Infinity if it did not. */
  replacedAtMs: number;
}

/** Opens inboxes in a cluster. Calls `onReconnect` when channels are subscribed again after a loss. */
export class ClusterHub {
  readonly #nodes: ClusterNodes;
  readonly #onReconnect: () => void;
  /**
   * The channels by `channelKey`. A caller that does not know how messages to a name are published can subscribe to it
   * twice: as a plain channel and as a sharded one.
   */
  readonly #channels = new Map<string, Channel>();
  /** The connections by the `channelKey` of their addresses. */
  readonly #posts = new Map<string, Post>();
  /** The number of connections that are being replaced. */
  #replacing = 0;
  /** Unsubscriptions in progress, by channel. A new subscription to the same channel waits for them. */
  readonly #leaving = new Map<string, Promise<void>>();
  #notifying: NodeJS.Timeout | undefined;
  readonly #forbidden = new ForbiddenChannels();
  #isClosed = false;

  constructor(nodes: ClusterNodes, onReconnect: () => void) {
    this.#nodes = nodes;
    this.#onReconnect = onReconnect;
  }

  /** See `Store.inbox`. */
  open(name: string, onMessage: (message: string) => void, timeoutMs: number): Promise<Inbox> {
    return this.#openAs(false, name, onMessage, timeoutMs);
  }

  /** See `Store.shardInbox`. */
  openShard(name: string, onMessage: (message: string) => void, timeoutMs: number): Promise<Inbox> {
    return this.#openAs(true, name, onMessage, timeoutMs);
  }

  async #openAs(
    isSharded: boolean,
    name: string,
    onMessage: (message: string) => void,
    timeoutMs: number,
  ): Promise<Inbox> {
    const key = channelKey(name, isSharded);
    const channel = this.#channels.get(key) ?? {
      name,
      isSharded,
      slot: clusterSlot(name),
      listeners: new Set(),
      isCounted: true,
      isMissed: false,
      post: undefined,
      place: "",
      attaching: undefined,
    };
    this.#channels.set(key, channel);
    // Wrapped in a new function, because the same callback may be registered twice.
    const listener = (message: string): void => onMessage(message);
    channel.listeners.add(listener);
    try {
      await within(timeoutMs, this.#attach(channel));
    } catch (cause) {
      void this.#leave(channel, listener);
      if (cause instanceof LockError) throw cause;
      const transient = !this.#isClosed && !refusesForGood(cause);
      throw notRun(name, cause, transient, this.#forbidden.warn(cause, name));
    }
    return {
      isCounted: channel.isCounted,
      get connection() {
        return channel.place;
      },
      reopen: (timeoutMs) => this.#reopen(channel, timeoutMs),
      close: () => within(timeoutMs, this.#leave(channel, listener)).catch(() => {}),
    };
  }

  /** Closes all connections. A second call does nothing. */
  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#notifying);
    this.#channels.clear();
    await Promise.all([...this.#posts.values()].map((post) => this.#end(post)));
  }

  /**
   * Resolves when the server that has the channel has confirmed the subscription. Concurrent callers share one attempt.
   */
  #attach(channel: Channel): Promise<void> {
    if (channel.post !== undefined) return Promise.resolve();
    if (channel.attaching === undefined) {
      const attaching = outsideRequests(() => this.#follow(channel)).finally(() => {
        // If the subscription was lost in the meantime, another attempt may already be in progress.
        if (channel.attaching === attaching) channel.attaching = undefined;
      });
      channel.attaching = attaching;
    }
    return channel.attaching;
  }

  async #follow(channel: Channel): Promise<void> {
    const { name, isSharded } = channel;
    let post: Post | undefined;
    for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS)) {
      await this.#leaving.get(channelKey(name, isSharded));
      if (this.#isClosed || channel.listeners.size === 0) {
        // The server must not count a subscriber that no longer reads.
        await this.#unsubscribe(channel, post);
        throw NOBODY;
      }
      try {
        post = this.#postFor(channel);
        const subscriber = await within(ANSWER_MS, post.subscriber);
        await within(ANSWER_MS, subscriber.subscribe(name, isSharded && channel.isCounted));
        // A replica accepts subscriptions too, but its master does not count them, so look up the owner again.
        if (isSharded && channel.isCounted) await this.#refresh(name);
        if (post.isUp && channel.listeners.size > 0 && this.#isRight(channel, post)) {
          channel.post = post;
          channel.place = channelKey(post.address, post.isSharded);
          post.channels.add(channel);
          channel.attaching = undefined;
          this.#watch(post);
          if (channel.isMissed) this.#notify();
          channel.isMissed = false;
          return;
        }
      } catch (cause) {
        if (isSharded && channel.isCounted && isUnknownCommand(cause)) {
          channel.isCounted = false;
          continue;
        }
        if (refusesForGood(cause)) throw cause;
        // Do not reuse a connection that did not reply in time.
        if (post !== undefined && post.channels.size === 0 && !isServerReply(cause)) void this.#end(post);
      }
      await unrefSleep(pauseMs);
      await this.#refresh(name);
    }
  }

  /** The connection to the server that has the channel. A plain channel may use any server. */
  #postFor({ slot, isSharded: hasSlot, isCounted }: Channel): Post {
    const isSharded = hasSlot && isCounted;
    const masters = hasSlot ? [] : this.#nodes.masters();
    const address = hasSlot
      ? this.#nodes.ownerOf(slot)
      : (masters.find((master) => this.#posts.has(channelKey(master, false))) ??
        masters[Math.floor(Math.random() * masters.length)]);
    if (address === undefined) throw NO_OWNER;
    const known = this.#posts.get(channelKey(address, isSharded));
    if (known !== undefined) return known;
    const post: Post = {
      address,
      isSharded,
      subscriber: Promise.resolve(
        this.#nodes.openSubscriber(address, {
          onMessage: (channel, message) => {
            // On a server without sharded channels, plain ones are used instead.
            for (const isWanted of isSharded ? [true] : [false, true]) {
              const { listeners = [] } = this.#channels.get(channelKey(channel, isWanted)) ?? {};
              for (const listener of listeners) listener(message);
            }
          },
          onMoved: () => this.#followAgain([...post.channels].filter(({ isSharded: hasSlot }) => hasSlot)),
          onEnd: () => void this.#end(post),
        }),
      ),
      channels: new Set(),
      watch: undefined,
      isUp: true,
      replacedAtMs: this.#replacing > 0 ? performance.now() : -Infinity,
    };
    post.subscriber.catch(() => void this.#end(post));
    this.#posts.set(channelKey(address, isSharded), post);
    return post;
  }

  #isRight({ isSharded, isCounted, slot }: Channel, { address }: Post): boolean {
    return !isSharded || !isCounted || this.#nodes.ownerOf(slot) === address;
  }

  /** Checks the connection periodically: a server may stop replying, or become a replica, without any event. */
  #watch(post: Post, checks = 1): void {
    if (post.watch !== undefined || !post.isUp) return;
    post.watch = outsideRequests(() => setTimeout(() => void this.#check(post, checks), CHECK_MS));
    post.watch.unref();
  }

  async #check(post: Post, checks: number): Promise<void> {
    if (checks % CHECKS_PER_PROBE === 0) await this.#probe(post);
    post.watch = undefined;
    const elsewhere = [...post.channels].filter((channel) => !this.#isRight(channel, post));
    this.#followAgain(elsewhere);
    for (const channel of elsewhere) void this.#unsubscribe(channel, post);
    if (post.channels.size > 0) this.#watch(post, checks + 1);
  }

  async #probe(post: Post): Promise<void> {
    const [channel] = post.channels;
    const refreshing = channel === undefined ? undefined : this.#refresh(channel.name);
    try {
      await within(
        ANSWER_MS,
        post.subscriber.then((subscriber) => subscriber.ping()),
      );
    } catch (cause) {
      // A server that replies with an error is alive.
      if (!isServerReply(cause)) void this.#end(post);
    }
    await refreshing;
  }

  /**
   * Makes the client look up the channel, within `ANSWER_MS`. Never rejects, because only the client's slot table
   * matters afterward.
   */
  async #refresh(name: string): Promise<void> {
    await within(ANSWER_MS, this.#nodes.refresh(name)).catch(() => {});
  }

  async #end(post: Post): Promise<void> {
    if (!post.isUp) return;
    post.isUp = false;
    clearTimeout(post.watch);
    const key = channelKey(post.address, post.isSharded);
    if (this.#posts.get(key) === post) this.#posts.delete(key);
    this.#followAgain([...post.channels]);
    // Opening a connection may take forever, so this wait is limited. The connection is closed as soon as it is open.
    await within(
      ANSWER_MS,
      post.subscriber.then((subscriber) => subscriber.close()),
    ).catch(() => {});
  }

  /** See `Inbox.reopen`. */
  async #reopen(channel: Channel, timeoutMs: number): Promise<void> {
    const { post } = channel;
    // If `post` is undefined, the channel is already moving to another connection.
    if (post === undefined) return within(timeoutMs, this.#attach(channel));
    if (performance.now() - post.replacedAtMs < YOUNG_MS) return;
    const key = channelKey(post.address, post.isSharded);
    if (this.#posts.get(key) === post) this.#posts.delete(key);
    const moved = [...post.channels];
    this.#replacing += 1;
    try {
      // The old connection stays open until the new one is subscribed, so that it can still deliver messages.
      this.#followAgain(moved);
      await within(timeoutMs, Promise.all(moved.map((one) => this.#attachIfUsed(one))));
      for (const { post: current } of moved) if (current !== undefined) current.replacedAtMs = performance.now();
    } finally {
      this.#replacing -= 1;
      void this.#end(post);
    }
  }

  /** Like `#attach`, but does not fail if the last listener leaves in the meantime. */
  async #attachIfUsed(channel: Channel): Promise<void> {
    try {
      await this.#attach(channel);
    } catch (cause) {
      if (channel.listeners.size > 0) throw cause;
    }
  }

  /** Subscribes again to channels whose subscriptions may be lost. */
  #followAgain(channels: readonly Channel[]): void {
    for (const channel of channels) {
      channel.post?.channels.delete(channel);
      channel.post = undefined;
      channel.isMissed = true;
      if (this.#isClosed || channel.listeners.size === 0) continue;
      // Ignore the error: the next call to `#attach` tries again.
      this.#attach(channel).catch(() => {});
    }
  }

  #notify(): void {
    if (this.#notifying !== undefined || this.#isClosed) return;
    this.#notifying = setTimeout(() => {
      this.#notifying = undefined;
      this.#onReconnect();
    }, GATHER_MS);
    // This timer must not keep the process alive: waiters have their own timers, and without waiters no notification is
    // needed.
    this.#notifying.unref();
  }

  async #leave(channel: Channel, listener: (message: string) => void): Promise<void> {
    if (!channel.listeners.delete(listener) || channel.listeners.size > 0) return;
    const { name, isSharded, post } = channel;
    const key = channelKey(name, isSharded);
    if (this.#channels.get(key) === channel) this.#channels.delete(key);
    channel.post = undefined;
    post?.channels.delete(channel);
    const leaving = this.#unsubscribe(channel, post);
    this.#leaving.set(key, leaving);
    await leaving;
    if (this.#leaving.get(key) === leaving) this.#leaving.delete(key);
  }

  async #unsubscribe(channel: Channel, post: Post | undefined): Promise<void> {
    try {
      const subscriber = await post?.subscriber;
      await within(
        ANSWER_MS,
        Promise.resolve(subscriber?.unsubscribe(channel.name, channel.isSharded && channel.isCounted)),
      );
    } catch (cause) {
      // Usually the connection is gone, and the subscription with it. Only a missing permission causes a warning.
      this.#forbidden.warn(cause, channel.name);
    }
  }
}

function channelKey(name: string, isSharded: boolean): string {
  return `${isSharded ? "sharded" : "plain"} ${name}`;
}

function isServerReply(cause: unknown): boolean {
  return cause instanceof Error && /^[A-Z]+ /.test(cause.message);
}

/**
 * The inboxes of a store on a cluster: one listening connection for each master that is needed, and one for plain channels.
 *
 * It keeps the promise of InboxHub (an inbox that was confirmed either hears every message, or its owner is told once
 * it hears again) where channels move: with their slot, or to the next master. So it follows them itself. Client libraries
 * that do so by themselves do not tell when they are there.
 */

import { LockError, StoreError } from "../core/errors.js";
import { outsideRequests } from "../core/runtime.js";
import type { Inbox } from "../core/store.js";
import { clusterSlot } from "./cluster-slot.js";
import { isUnknownCommand, refusesForGood } from "./failure.js";
import { ForbiddenChannels } from "./forbidden.js";
import { unrefSleep, within } from "./timeout.js";

/** Longest wait for a confirmation before it is looked for elsewhere. */
const ANSWER_MS = 1_000;
/** How often it is looked whether the client has learnt of another owner: a master that became a replica keeps its subscribers. */
const LOOK_MS = 250;
/** Every so many looks the servers are asked: whether they are alive, and who the owner is. */
const LOOKS_PER_PROBE = 8;
/** Pauses between tries to follow a channel, doubled each time. A failover takes seconds, a moved slot none. */
const FIRST_PAUSE_MS = 10;
const LONGEST_PAUSE_MS = 250;
/** How long what is told of several channels is gathered. */
const GATHER_MS = 10;
const NOBODY = new Error("nobody listens any more");
const NO_OWNER = new Error("the client knows no server for this slot");

/** A connection to one server of a cluster that only listens. */
export interface NodeSubscriber {
  /** Resolves when the server has confirmed it. To subscribe once more must be harmless. Rejects where the slot is elsewhere. */
  subscribe(channel: string, isSharded: boolean): Promise<unknown>;
  unsubscribe(channel: string, isSharded: boolean): Promise<unknown>;
  ping(): Promise<unknown>;
  close(): unknown;
}

/** What such a connection reports. */
export interface NodeSubscriberEvents {
  onMessage(channel: string, message: string): void;
  /** The server has ended some subscriptions, since their slots are elsewhere. */
  onMoved(): void;
  /** The connection is lost. It does not come back by itself. */
  onEnd(): void;
}

/** What a client library knows about its cluster. */
export interface ClusterNodes {
  /** Address of the master that has the slot, as far as the client knows. */
  ownerOf(slot: number): string | undefined;
  masters(): readonly string[];
  /** Has the client find out where the slot of that channel is. */
  refresh(channel: string): Promise<unknown>;
  openSubscriber(address: string, events: NodeSubscriberEvents): NodeSubscriber | Promise<NodeSubscriber>;
}

interface Channel {
  readonly name: string;
  readonly isSharded: boolean;
  readonly slot: number;
  readonly listeners: Set<(message: string) => void>;
  /** False once its server has been found to have no sharded channels: it is older than Redis 7. */
  isCounted: boolean;
  /** It was heard once and then lost: its owners are to be told as soon as it is heard again. */
  isMissed: boolean;
  post: Post | undefined;
  /** Key of the post where it was last heard. */
  place: string;
  attaching: Promise<void> | undefined;
}

interface Post {
  readonly address: string;
  /** ioredis goes deaf on a connection when the last channel of either sort is left, so no connection has both. */
  readonly isSharded: boolean;
  readonly subscriber: Promise<NodeSubscriber>;
  readonly channels: Set<Channel>;
  watch: NodeJS.Timeout | undefined;
  isUp: boolean;
}

/** See the file header. `onReconnect` is called when channels hear again after a loss. */
export class ClusterHub {
  readonly #nodes: ClusterNodes;
  readonly #onReconnect: () => void;
  /** By `keyOf`: a name may be listened to as both sorts at once, by whoever cannot know how it is published to. */
  readonly #channels = new Map<string, Channel>();
  /** By `keyOf` of their addresses. */
  readonly #posts = new Map<string, Post>();
  /** Unsubscriptions under way, by channel: who opens the same one again must not be overtaken by them. */
  readonly #leaving = new Map<string, Promise<void>>();
  #telling: NodeJS.Timeout | undefined;
  readonly #forbidden = new ForbiddenChannels();
  #isClosed = false;

  constructor(nodes: ClusterNodes, onReconnect: () => void) {
    this.#nodes = nodes;
    this.#onReconnect = onReconnect;
  }

  /** As `Store.inbox`. */
  open(name: string, onMessage: (message: string) => void, timeoutMs: number): Promise<Inbox> {
    return this.#openAs(false, name, onMessage, timeoutMs);
  }

  /** As `Store.shardInbox`. */
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
    // A function of its own: the same callback may listen twice.
    const listener = (message: string): void => onMessage(message);
    channel.listeners.add(listener);
    try {
      await within(timeoutMs, this.#attach(channel));
    } catch (cause) {
      void this.#leave(channel, listener);
      if (cause instanceof LockError) throw cause;
      const transient = !this.#isClosed && !refusesForGood(cause);
      const missing = this.#forbidden.tell(cause, name);
      throw new StoreError(name, { mayHaveRun: false, transient, cause, missingPermission: missing });
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
    clearTimeout(this.#telling);
    this.#channels.clear();
    await Promise.all([...this.#posts.values()].map((post) => this.#end(post)));
  }

  /** Resolves when the channel is confirmed, by whichever server has it. One way there for all who want it. */
  #attach(channel: Channel): Promise<void> {
    if (channel.post !== undefined) return Promise.resolve();
    if (channel.attaching === undefined) {
      const attaching = outsideRequests(() => this.#follow(channel)).finally(() => {
        // It may have been lost since, and be on its way again.
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
        // The server must not count a receiver that is none.
        await this.#unsubscribe(channel, post);
        throw NOBODY;
      }
      try {
        post = this.#postFor(channel);
        const subscriber = await within(ANSWER_MS, post.subscriber);
        await within(ANSWER_MS, subscriber.subscribe(name, isSharded && channel.isCounted));
        // A replica takes subscriptions too, but the master does not count them.
        if (isSharded && channel.isCounted) await this.#refresh(name);
        if (post.isUp && channel.listeners.size > 0 && this.#isRight(channel, post)) {
          channel.post = post;
          channel.place = channelKey(post.address, post.isSharded);
          post.channels.add(channel);
          channel.attaching = undefined;
          this.#watch(post);
          if (channel.isMissed) this.#tell();
          channel.isMissed = false;
          return;
        }
      } catch (cause) {
        if (isSharded && channel.isCounted && isUnknownCommand(cause)) {
          channel.isCounted = false;
          continue;
        }
        if (refusesForGood(cause)) throw cause;
        // What does not answer in time is not asked again.
        if (post !== undefined && post.channels.size === 0 && !isServerReply(cause)) void this.#end(post);
      }
      await unrefSleep(pauseMs);
      await this.#refresh(name);
    }
  }

  /** The connection to the server that has the channel; for a channel without a slot, any. */
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
            // A server without sharded channels has the others in their place.
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
    };
    post.subscriber.catch(() => void this.#end(post));
    this.#posts.set(channelKey(address, isSharded), post);
    return post;
  }

  #isRight({ isSharded, isCounted, slot }: Channel, { address }: Post): boolean {
    return !isSharded || !isCounted || this.#nodes.ownerOf(slot) === address;
  }

  /** A server may fall silent, or become a replica, without a word. */
  #watch(post: Post, looks = 1): void {
    if (post.watch !== undefined || !post.isUp) return;
    post.watch = outsideRequests(() => setTimeout(() => void this.#look(post, looks), LOOK_MS));
    post.watch.unref();
  }

  async #look(post: Post, looks: number): Promise<void> {
    if (looks % LOOKS_PER_PROBE === 0) await this.#probe(post);
    post.watch = undefined;
    const elsewhere = [...post.channels].filter((channel) => !this.#isRight(channel, post));
    this.#followAgain(elsewhere);
    for (const channel of elsewhere) void this.#unsubscribe(channel, post);
    if (post.channels.size > 0) this.#watch(post, looks + 1);
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
      // A server that refuses to be pinged is there.
      if (!isServerReply(cause)) void this.#end(post);
    }
    await refreshing;
  }

  /** Has the client look where the channel is, for a while. Never rejects: what matters is what it knows afterwards. */
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
    // A connection that is still being made may take for ever; it is closed as soon as it is there.
    await within(
      ANSWER_MS,
      post.subscriber.then((subscriber) => subscriber.close()),
    ).catch(() => {});
  }

  /** As `Inbox.reopen`. */
  async #reopen(channel: Channel, timeoutMs: number): Promise<void> {
    const { post } = channel;
    // Without one it is on its way to another connection already.
    if (post === undefined) return within(timeoutMs, this.#attach(channel));
    const key = channelKey(post.address, post.isSharded);
    if (this.#posts.get(key) === post) this.#posts.delete(key);
    const moved = [...post.channels];
    try {
      // Where the old connection still delivers, it does so until the new one is subscribed.
      this.#followAgain(moved);
      await within(timeoutMs, Promise.all(moved.map((one) => this.#attach(one))));
    } finally {
      void this.#end(post);
    }
  }

  /** Channels that were heard, and may be no more. */
  #followAgain(channels: readonly Channel[]): void {
    for (const channel of channels) {
      channel.post?.channels.delete(channel);
      channel.post = undefined;
      channel.isMissed = true;
      if (this.#isClosed || channel.listeners.size === 0) continue;
      // Whoever asks next is told why it failed.
      this.#attach(channel).catch(() => {});
    }
  }

  #tell(): void {
    if (this.#telling !== undefined || this.#isClosed) return;
    this.#telling = setTimeout(() => {
      this.#telling = undefined;
      this.#onReconnect();
    }, GATHER_MS);
    // Waiters have timers of their own; where nobody waits, nobody needs to hear.
    this.#telling.unref();
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
      // The connection is gone, and the subscription with it; unless it is not permitted.
      this.#forbidden.tell(cause, channel.name);
    }
  }
}

function channelKey(name: string, isSharded: boolean): string {
  return `${isSharded ? "sharded" : "plain"} ${name}`;
}

function isServerReply(cause: unknown): boolean {
  return cause instanceof Error && /^[A-Z]+ /.test(cause.message);
}

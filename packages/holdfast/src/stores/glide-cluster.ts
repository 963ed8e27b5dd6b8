/** Holdfast on a cluster client of @valkey/valkey-glide 2.5 that the caller owns and closes. */

import { outsideRequests } from "../core/runtime.js";
import type { Inbox, Store } from "../core/store.js";
import { clientStore, type Inboxes, type OpenSubscriber, type Terms } from "./client-store.js";
import { clusterSlot } from "./cluster-slot.js";
import { GLIDE_TIMEOUTS, type GlideClient, noSubscriber } from "./glide.js";
import { InboxHub } from "./inbox-hub.js";
import { type ScriptClient, toArgument } from "./script-runner.js";
import { within } from "./timeout.js";

/**
 * A store on one GLIDE client of a cluster.
 *
 * The library follows moved slots with commands and with channels, but does not tell when a channel hears again; and
 * whoever only listens stays with a master that has become a replica, where nobody counts it. So it is made to look, and
 * the masters are asked what they count.
 *
 * @param openSubscriber  makes the client that listens; without it inboxes reject with UnsupportedError
 */
export function glideClusterStore(
  glide: GlideClient,
  openSubscriber: OpenSubscriber = noSubscriber,
  terms: Terms = {},
): Store {
  const client: ScriptClient = {
    evalsha(sha1, keys, args) {
      const words = ["EVALSHA", sha1, String(keys.length), ...keys, ...args.map(toArgument)];
      if (keys.length > 0) return glide.customCommand(words);
      // Without keys it would go anywhere, and on a replica it cannot be loaded.
      return glide.customCommand(words, { route: { type: "primarySlotKey", key: sha1 } });
    },
    load(source, [key], attempt) {
      // Whom the client was sent on to, while a slot moves, is not in its table.
      const isOne = key !== undefined && attempt === 1;
      return glide.customCommand(["SCRIPT", "LOAD", source], {
        route: isOne ? { type: "primarySlotKey", key } : "allPrimaries",
      });
    },
    async evalshaOnEach(sha1, args) {
      const words = ["EVALSHA", sha1, "0", ...args.map(toArgument)];
      const answers = await glide.customCommand(words, { route: "allPrimaries" });
      // `[{ key, value }]` by address, or the answer itself where there is one primary.
      const isByAddress = Array.isArray(answers) && answers.every((one) => isObject(one) && "value" in one);
      return isByAddress ? answers.map(({ value }) => value) : [answers];
    },
    isCluster: true,
    isClosed: () => glide.isClosed === true,
    losses: () => 0,
  };
  return clientStore({
    kind: "glide",
    client,
    inboxes: (onReconnect) => new ClusterSubscriber(glide, openSubscriber, onReconnect),
    watch: () => () => {},
    terms,
    clientTimeouts: () => GLIDE_TIMEOUTS,
  });
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}

/**
 * The library does not tell which channel it hears over which of its connections. Masters have long ranges of slots, so
 * channels of near slots are taken for those of one connection.
 */
const SLOTS_PER_CHECK = 1_024;
/** How often masters are asked whether they count a channel. */
const LOOK_MS = 1_000;
/** Longest wait for each of the answers. */
const ANSWER_MS = 1_000;

/** All channels over one client, which has a connection to each server. */
class ClusterSubscriber implements Inboxes {
  readonly #glide: GlideClient;
  readonly #onReconnect: () => void;
  readonly #hub: InboxHub;
  /** A channel is sharded or it is not, for good. The number of those who listen to it here. */
  readonly #sharded = new Map<string, number>();
  /** Those that no master counted when it was asked. */
  readonly #uncounted = new Set<string>();
  #looking: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(glide: GlideClient, openSubscriber: OpenSubscriber, onReconnect: () => void) {
    this.#glide = glide;
    this.#onReconnect = onReconnect;
    const isSharded = (channel: string): boolean => this.#sharded.has(channel);
    this.#hub = new InboxHub((events) => openSubscriber({ ...events, isSharded }), onReconnect);
  }

  open(channel: string, onMessage: (message: string) => void, timeoutMs: number): Promise<Inbox> {
    return this.#hub.open(channel, onMessage, timeoutMs);
  }

  async openShard(channel: string, onMessage: (message: string) => void, timeoutMs: number): Promise<Inbox> {
    if (!this.#sharded.has(channel)) this.#sharded.set(channel, 0);
    const inbox = await this.#hub.open(channel, onMessage, timeoutMs);
    this.#count(channel, 1);
    this.#look();
    let isOpen = true;
    return {
      ...inbox,
      connection: `slots ${Math.floor(clusterSlot(channel) / SLOTS_PER_CHECK)}`,
      close: async () => {
        if (isOpen) this.#count(channel, -1);
        isOpen = false;
        await inbox.close();
      },
    };
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#looking);
    await this.#hub.close();
  }

  #count(channel: string, change: number): void {
    this.#sharded.set(channel, (this.#sharded.get(channel) ?? 0) + change);
  }

  #look(): void {
    if (this.#looking !== undefined || this.#isClosed) return;
    this.#looking = outsideRequests(() => setTimeout(() => void this.#mend(), LOOK_MS));
    this.#looking.unref();
  }

  async #mend(): Promise<void> {
    const listened = [...this.#sharded].flatMap(([channel, listeners]) => (listeners > 0 ? [channel] : []));
    const mended = await Promise.all(listened.map((channel) => this.#isMended(channel).catch(() => false)));
    if (mended.includes(true) && !this.#isClosed) this.#onReconnect();
    this.#looking = undefined;
    if (listened.length > 0) this.#look();
  }

  /** Whether the channel is counted again after it was not. */
  async #isMended(channel: string): Promise<boolean> {
    // The client that listens learns of another master by a command alone, and then it follows.
    await within(ANSWER_MS, this.#hub.refresh(channel)).catch(() => {});
    const asking = this.#glide.customCommand(["PUBSUB", "SHARDNUMSUB", channel], {
      route: { type: "primarySlotKey", key: channel },
    });
    // `[{ key, value }]`, or in other protocols `{ [channel]: count }` or `[channel, count]`.
    const isCounted = !/[:,]0[\]}]/.test(JSON.stringify(await within(ANSWER_MS, asking)));
    if (isCounted) return this.#uncounted.delete(channel);
    this.#uncounted.add(channel);
    return false;
  }
}

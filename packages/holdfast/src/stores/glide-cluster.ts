/** The store for a cluster client of @valkey/valkey-glide 2.5. The caller owns and closes the client. */

import { outsideRequests } from "../core/runtime.js";
import type { Inbox, Store } from "../core/store.js";
import { clientStore, type GrantConditions, type Inboxes, type OpenSubscriber } from "./client-store.js";
import { ClusterFailoverGuard } from "./cluster-failover-guard.js";
import { clusterSlot } from "./cluster-slot.js";
import { isUnknownCommand, notRun, refusesForGood } from "./failure.js";
import { GLIDE_TIMEOUTS, type GlideClient, noSubscriber } from "./glide.js";
import { InboxHub } from "./inbox-hub.js";
import { onEach } from "./run-on-each.js";
import { type ScriptClient, toArgument } from "./script-runner.js";
import { within } from "./timeout.js";

/**
 * Creates a store on one GLIDE cluster client.
 *
 * The library follows moved slots for commands and channels, but does not report when a channel is subscribed again. In
 * addition, a client that only subscribes stays connected to a master that became a replica, so the new master does not
 * have it as a subscriber. The store therefore makes the client look up its channels periodically, and asks the masters
 * whether each channel has a subscriber.
 *
 * @param openSubscriber  creates the subscriber client; without it, opening an inbox rejects with UnsupportedError
 * @param conditions  conditions under which a grant counts
 */
export function glideClusterStore(
  glide: GlideClient,
  openSubscriber: OpenSubscriber = noSubscriber,
  conditions: GrantConditions = {},
): Store {
  const client: ScriptClient = {
    evalsha(sha1, keys, args) {
      const words = ["EVALSHA", sha1, String(keys.length), ...keys, ...args.map(toArgument)];
      if (keys.length > 0) return glide.customCommand(words);
      // Choose a master, because the client may send a script without keys to a replica, where it cannot be loaded.
      return glide.customCommand(words, { route: { type: "primarySlotKey", key: sha1 } });
    },
    load(source, [key], attempt) {
      // While a slot moves, the slot table names only the old owner, so a retry loads the script on all masters.
      const isOne = key !== undefined && attempt === 1;
      return glide.customCommand(["SCRIPT", "LOAD", source], {
        route: isOne ? { type: "primarySlotKey", key } : "allPrimaries",
      });
    },
    async evalshaOnEach(sha1, args) {
      const words = ["EVALSHA", sha1, "0", ...args.map(toArgument)];
      const answers = await glide.customCommand(words, { route: "allPrimaries" });
      // The result is `[{ key, value }]`, with one item per address, or the reply itself if there is only one primary.
      const isByAddress = Array.isArray(answers) && answers.every((one) => isObject(one) && "value" in one);
      return isByAddress ? answers.map(({ value }) => value) : [answers];
    },
    isCluster: true,
    isClosed: () => glide.isClosed === true,
    losses: () => 0,
  };
  const store = clientStore({
    kind: "glide",
    client,
    inboxes: (onReconnect) => new ClusterSubscriber(glide, openSubscriber, onReconnect),
    watch: () => () => {},
    conditions,
    failoverGuard: (grace, run, client) => new ClusterFailoverGuard(grace, run, client),
    clientTimeouts: () => GLIDE_TIMEOUTS,
  });
  return { ...store, runOnEach: onEach(client) };
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}

/**
 * Size of a range of slots whose channels are assumed to share a connection. The library does not report which of its
 * connections a channel uses, but masters usually own long ranges of slots.
 */
const SLOTS_PER_CHECK = 1_024;

/** The range of slots that a channel belongs to, for a warning. */
function slotsOf(channel: string): string {
  const first = clusterSlot(channel) - (clusterSlot(channel) % SLOTS_PER_CHECK);
  return `slots ${first} to ${first + SLOTS_PER_CHECK - 1}`;
}

/** How often to ask the masters whether a channel has a subscriber, in ms. */
const CHECK_MS = 1_000;
/** Timeout of each request, in ms. */
const ANSWER_MS = 1_000;

/** Opens all channels over one subscriber client, which has a connection to each server. */
class ClusterSubscriber implements Inboxes {
  readonly #glide: GlideClient;
  readonly #onReconnect: () => void;
  readonly #hub: InboxHub;
  /** The number of listeners of each sharded channel. A channel never changes between sharded and plain. */
  readonly #sharded = new Map<string, number>();
  /** Channels whose master counted no subscriber at the last check. */
  readonly #uncounted = new Set<string>();
  /**
   * True once a server has shown that it has sharded channels. Until then, `openShard` asks each time, because a server
   * may be upgraded.
   */
  #knowsSharded = false;
  #checking: NodeJS.Timeout | undefined;
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
    if (!(await this.#isSharded(channel, timeoutMs))) {
      return { ...(await this.#hub.open(channel, onMessage, timeoutMs)), isCounted: false };
    }
    if (!this.#sharded.has(channel)) this.#sharded.set(channel, 0);
    const inbox = await this.#hub.open(channel, onMessage, timeoutMs);
    this.#count(channel, 1);
    this.#checkLater();
    let isOpen = true;
    return {
      ...inbox,
      connection: slotsOf(channel),
      close: async () => {
        if (isOpen) this.#count(channel, -1);
        isOpen = false;
        await inbox.close();
      },
    };
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#checking);
    await this.#hub.close();
  }

  /**
   * Whether the server of the channel's slot has sharded channels. Checked before subscribing, because on a server
   * before Redis 7, the library would repeat `SSUBSCRIBE` without a pause.
   *
   * @throws StoreError  no reply, so the caller must ask again
   */
  async #isSharded(channel: string, timeoutMs: number): Promise<boolean> {
    if (this.#knowsSharded || this.#sharded.has(channel)) return true;
    try {
      // Without arguments, the command fails on any server, but only a server that lacks it reports an unknown command.
      await within(
        timeoutMs,
        this.#glide.customCommand(["SPUBLISH"], { route: { type: "primarySlotKey", key: channel } }),
      );
    } catch (cause) {
      if (isUnknownCommand(cause)) return false;
      if (!refusesForGood(cause)) throw notRun(channel, cause, true);
    }
    this.#knowsSharded = true;
    return true;
  }

  #count(channel: string, change: number): void {
    this.#sharded.set(channel, (this.#sharded.get(channel) ?? 0) + change);
  }

  #checkLater(): void {
    if (this.#checking !== undefined || this.#isClosed) return;
    this.#checking = outsideRequests(() => setTimeout(() => void this.#check(), CHECK_MS));
    this.#checking.unref();
  }

  async #check(): Promise<void> {
    const listened = [...this.#sharded].flatMap(([channel, listeners]) => (listeners > 0 ? [channel] : []));
    const back = await Promise.all(listened.map((channel) => this.#isBack(channel).catch(() => false)));
    if (back.includes(true) && !this.#isClosed) this.#onReconnect();
    this.#checking = undefined;
    if (listened.length > 0) this.#checkLater();
  }

  /** Whether the master counts a subscriber of the channel now, but counted none at the last check. */
  async #isBack(channel: string): Promise<boolean> {
    // The subscriber client notices a new master only when it sends a command. It then moves its subscription there.
    await within(ANSWER_MS, this.#hub.refresh(channel)).catch(() => {});
    const asking = this.#glide.customCommand(["PUBSUB", "SHARDNUMSUB", channel], {
      route: { type: "primarySlotKey", key: channel },
    });
    // The reply is `[{ key, value }]`, or in other protocol versions `{ [channel]: count }` or `[channel, count]`.
    const isCounted = !/[:,]0[\]}]/.test(JSON.stringify(await within(ANSWER_MS, asking)));
    if (isCounted) return this.#uncounted.delete(channel);
    this.#uncounted.add(channel);
    return false;
  }
}

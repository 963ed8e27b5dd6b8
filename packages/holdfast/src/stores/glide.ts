/** The store for a @valkey/valkey-glide 2.5 client. The caller owns and closes the client. */

import { UnsupportedError } from "../core/errors.js";
import type { ClientTimeouts, Store } from "../core/store.js";
import { clientStore, type GrantConditions, type OpenSubscriber } from "./client-store.js";
import { InboxHub, type Subscriber, type SubscriberEvents } from "./inbox-hub.js";
import { type ScriptClient, toArgument } from "./script-runner.js";
import { within } from "./timeout.js";

/** Text as this library returns it: a string, or bytes if the client is configured that way. */
type GlideText = string | Uint8Array;

/** The part of a client that this store uses. `IoredisClient` explains why it is not the library's own type. */
export interface GlideClient {
  /** Not in the library's types. */
  readonly isClosed?: boolean | undefined;
  customCommand(words: string[], options?: { readonly route: GlideRoute }): Promise<unknown>;
  subscribe(channels: string[], timeoutMs: number): Promise<unknown>;
  /** `null` means all channels. */
  unsubscribe(channels: string[] | null, timeoutMs: number): Promise<unknown>;
  getPubSubMessage(): Promise<{ readonly channel: GlideText; readonly message: GlideText }>;
  /** Only on a cluster client, like `sunsubscribe`. */
  ssubscribe?(channels: string[], timeoutMs: number): Promise<unknown>;
  sunsubscribe?(channels: string[] | null, timeoutMs: number): Promise<unknown>;
  close(): void;
}

/** Which server of a cluster a command goes to. */
export type GlideRoute = "allPrimaries" | { readonly type: "primarySlotKey"; readonly key: string };

const NOT_OF_A_CLUSTER = "the result of `subscriber` for a GlideClusterClient must also be a GlideClusterClient";

/** How long to wait for the server to confirm the unsubscribe before the client is closed, in ms. */
const GOODBYE_MS = 1_000;

/** The library checks its connections and replaces dead ones by itself. */
export const GLIDE_TIMEOUTS: ClientTimeouts = {
  library: "glide",
  socketTimeoutMs: undefined,
  keepAliveMs: undefined,
  cure: undefined,
};

/** The library's value for "no timeout". The store applies its own timeouts. */
const NO_TIMEOUT = 0;

/**
 * Creates a store on one GLIDE client.
 *
 * The library has no connection events, so the store cannot call `onReconnect` when the client has reconnected. Waiters
 * notice missed messages at their next re-check. The library also cannot duplicate a client.
 *
 * @param openSubscriber  opens the subscriber connection; without it `inbox` rejects with UnsupportedError
 * @param conditions  conditions under which a grant counts
 */
export function glideStore(
  glide: GlideClient,
  openSubscriber: OpenSubscriber = noSubscriber,
  conditions: GrantConditions = {},
): Store {
  const client: ScriptClient = {
    evalsha: (sha1, keys, args) =>
      glide.customCommand(["EVALSHA", sha1, String(keys.length), ...keys, ...args.map(toArgument)]),
    load: (source) => glide.customCommand(["SCRIPT", "LOAD", source]),
    isClosed: () => glide.isClosed === true,
    losses: () => 0,
  };
  const clientTimeouts = (): ClientTimeouts => GLIDE_TIMEOUTS;
  return clientStore({
    kind: "glide",
    client,
    inboxes: (onReconnect) => new InboxHub(openSubscriber, onReconnect),
    watch: () => () => {},
    conditions,
    clientTimeouts,
  });
}

/**
 * Uses `subscriber` as a subscriber connection. It must not be used for anything else, because each message reaches
 * only one reader.
 */
export function glideSubscriber(subscriber: GlideClient, events: SubscriberEvents): Subscriber {
  const isSharded = (channel: string): boolean => events.isSharded?.(channel) === true;
  let refusal: { readonly cause: unknown } | undefined;

  async function pump(): Promise<void> {
    try {
      for (;;) {
        const { channel, message } = await subscriber.getPubSubMessage();
        events.onMessage(plainText(channel), plainText(message));
      }
    } catch (cause) {
      // The client was closed, or the user created it with a callback, which receives the messages instead.
      refusal = { cause };
      events.onEnd();
    }
  }
  void pump();

  return {
    async subscribe(channels) {
      const sharded = channels.filter(isSharded);
      const plain = channels.filter((channel) => !isSharded(channel));
      if (sharded.length > 0) {
        if (subscriber.ssubscribe === undefined) throw new TypeError(NOT_OF_A_CLUSTER);
        await subscriber.ssubscribe(sharded, NO_TIMEOUT);
      }
      if (plain.length > 0) await subscriber.subscribe(plain, NO_TIMEOUT);
      if (refusal !== undefined) throw refusal.cause;
    },
    refresh: (channel) => subscriber.customCommand(["EXISTS", channel]),
    async unsubscribe(channel) {
      if (isSharded(channel)) await subscriber.sunsubscribe?.([channel], NO_TIMEOUT);
      else await subscriber.unsubscribe([channel], NO_TIMEOUT);
    },
    async close() {
      // After `close`, the library keeps its socket open for several seconds. Unsubscribe first, because the server
      // counts the subscriber until the socket closes.
      const goodbyes = [subscriber.unsubscribe(null, NO_TIMEOUT)];
      if (subscriber.sunsubscribe !== undefined) goodbyes.push(subscriber.sunsubscribe(null, NO_TIMEOUT));
      await within(GOODBYE_MS, Promise.all(goodbyes)).catch(() => {});
      subscriber.close();
    },
  };
}

/** Used if the option `subscriber` is absent: inboxes are unsupported. @throws UnsupportedError */
export function noSubscriber(): never {
  throw new UnsupportedError(
    "inbox",
    "A GLIDE client cannot be duplicated: pass the option `subscriber`, a function that creates a client for the subscriber connection.",
  );
}

function plainText(text: GlideText): string {
  return typeof text === "string" ? text : Buffer.from(text).toString();
}

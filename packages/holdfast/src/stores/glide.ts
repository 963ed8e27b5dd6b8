/** Holdfast on a client of @valkey/valkey-glide 2.5, for one server or a cluster, that the caller owns and closes. */

import { UnsupportedError } from "../core/errors.js";
import type { Store } from "../core/store.js";
import { clientStore, type OpenEar, type Terms } from "./client-store.js";
import { within } from "./deadline.js";
import type { Ear, EarEvents } from "./inbox-hub.js";
import { type ScriptClient, toArgument } from "./script-runner.js";

/** A text as this library gives it: a string, or bytes if it was told so. */
type GlideText = string | Uint8Array;

/** What this store uses of a client. See IoredisClient for why it is not the library's own type. */
export interface GlideClient {
  /** Not in the library's types. */
  readonly isClosed?: boolean;
  customCommand(words: string[]): Promise<unknown>;
  subscribe(channels: string[], timeoutMs: number): Promise<unknown>;
  /** `null` means all channels. */
  unsubscribe(channels: string[] | null, timeoutMs: number): Promise<unknown>;
  getPubSubMessage(): Promise<{ readonly channel: GlideText; readonly message: GlideText }>;
  close(): void;
}

/** Longest time to wait for the server's confirmation before a close. */
const GOODBYE_MS = 1_000;

/** The library's word for "no timeout". The store has its own. */
const NO_TIMEOUT = 0;

/**
 * A store on one GLIDE client.
 *
 * The library has no connection events, so `onReconnect` is never called: after a loss, waiters find out at
 * their next re-check. Nor can it duplicate a client.
 *
 * @param openEar  makes the connection that listens; without it `inbox` rejects with UnsupportedError
 * @param terms    what has to be so for a grant to count
 */
export function glideStore(glide: GlideClient, openEar: OpenEar = noEar, terms: Terms = {}): Store {
  const client: ScriptClient = {
    evalsha: (sha1, keys, args) =>
      glide.customCommand(["EVALSHA", sha1, String(keys.length), ...keys, ...args.map(toArgument)]),
    load: (source) => glide.customCommand(["SCRIPT", "LOAD", source]),
    isClosed: () => glide.isClosed === true,
    losses: () => 0,
  };
  return clientStore({ kind: "glide", client, openEar, watch: () => () => {}, terms });
}

/** Listens on `subscriber`, a client that from now on does nothing else: each message goes to one reader only. */
export function glideEar(subscriber: GlideClient, events: EarEvents): Ear {
  let refusal: { readonly cause: unknown } | undefined;

  async function pump(): Promise<void> {
    try {
      for (;;) {
        const { channel, message } = await subscriber.getPubSubMessage();
        events.onMessage(textOf(channel), textOf(message));
      }
    } catch (cause) {
      // Closed, or made with a callback of the user's, which gets the messages in our place.
      refusal = { cause };
      events.onEnd();
    }
  }
  void pump();

  return {
    async subscribe(channels) {
      await subscriber.subscribe([...channels], NO_TIMEOUT);
      if (refusal !== undefined) throw refusal.cause;
    },
    unsubscribe: (channel) => subscriber.unsubscribe([channel], NO_TIMEOUT),
    async close() {
      // The library lets go of its socket seconds after close, and till then the server counts a receiver.
      await within(GOODBYE_MS, subscriber.unsubscribe(null, NO_TIMEOUT)).catch(() => {});
      subscriber.close();
    },
  };
}

function noEar(): never {
  throw new UnsupportedError(
    "inbox",
    "A GLIDE client cannot be duplicated: give the option `subscriber`, a function that makes a client for listening.",
  );
}

function textOf(text: GlideText): string {
  return typeof text === "string" ? text : Buffer.from(text).toString();
}

/** Holdfast on a cluster client of @valkey/valkey-glide 2.5 that the caller owns and closes. */

import type { Store } from "../core/store.js";
import { clientStore, type Inboxes, type OpenEar } from "./client-store.js";
import { type GlideClient, noEar } from "./glide.js";
import { InboxHub } from "./inbox-hub.js";
import { type ScriptClient, toArgument } from "./script-runner.js";

/**
 * A store on one GLIDE client of a cluster.
 *
 * The library follows moved slots with commands and with channels, but does not tell when a channel hears again: a
 * waiter finds out when it is told that it was passed over, or at its next re-check.
 *
 * @param openEar  makes the client that listens; without it inboxes reject with UnsupportedError
 */
export function glideClusterStore(glide: GlideClient, openEar: OpenEar = noEar): Store {
  const client: ScriptClient = {
    evalsha(sha1, keys, args) {
      const words = ["EVALSHA", sha1, String(keys.length), ...keys, ...args.map(toArgument)];
      if (keys.length > 0) return glide.customCommand(words);
      // Without keys it would go anywhere, and a replica cannot be taught.
      return glide.customCommand(words, { route: { type: "primarySlotKey", key: sha1 } });
    },
    load(source, [key], lesson) {
      // Whom the client was sent on to, while a slot moves, is not in its table.
      const isOne = key !== undefined && lesson === 1;
      return glide.customCommand(["SCRIPT", "LOAD", source], {
        route: isOne ? { type: "primarySlotKey", key } : "allPrimaries",
      });
    },
    isCluster: true,
    isClosed: () => glide.isClosed === true,
    losses: () => 0,
  };
  return clientStore({
    kind: "glide",
    client,
    inboxes: (onReconnect) => overClusterEar(openEar, onReconnect),
    watch: () => () => {},
  });
}

/** All channels over one client, which has a connection to each server. */
function overClusterEar(openEar: OpenEar, onReconnect: () => void): Inboxes {
  const sharded = new Set<string>();
  const isSharded = (channel: string): boolean => sharded.has(channel);
  const hub = new InboxHub((events) => openEar({ ...events, isSharded }), onReconnect);
  return {
    open: (...call) => hub.open(...call),
    openShard(channel, ...rest) {
      // A channel is sharded or it is not, for good.
      sharded.add(channel);
      return hub.open(channel, ...rest);
    },
    close: () => hub.close(),
  };
}

import type { Inbox, Store } from "../core/store.js";
import { ClusterHub, type ClusterNodes } from "./cluster-hub.js";
import { type Ear, type EarEvents, InboxHub } from "./inbox-hub.js";
import { runScript, type ScriptClient } from "./script-runner.js";

/** Makes a connection that listens, and reports to `events`. What it makes belongs to the store. */
export type OpenEar = (events: EarEvents) => Ear | Promise<Ear>;

/** Opens inboxes; see `Store.inbox` and `Store.shardInbox`. */
export interface Inboxes {
  open(channel: string, onMessage: (message: string) => void, timeoutMs: number): Promise<Inbox>;
  /** Present for a cluster. */
  openShard?(channel: string, onMessage: (message: string) => void, timeoutMs: number): Promise<Inbox>;
  close(): Promise<void>;
}

/** What differs from one client library to the next. */
export interface ClientParts {
  readonly kind: string;
  readonly client: ScriptClient;
  /** Makes what opens inboxes; it calls `onReconnect` when they hear again after a loss. */
  inboxes(onReconnect: () => void): Inboxes;
  /** Calls `onBack` whenever the caller's client is ready again after a loss; answers with what takes that back. */
  watch(onBack: () => void): () => void;
}

/** Inboxes over one connection that listens. */
export function overOneEar(openEar: OpenEar): ClientParts["inboxes"] {
  return (onReconnect) => new InboxHub(openEar, onReconnect);
}

/** Inboxes over a connection to each of several servers. */
export function overNodes(nodes: ClusterNodes): ClientParts["inboxes"] {
  return (onReconnect) => new ClusterHub(nodes, onReconnect);
}

/** The store port over the parts of one client library. */
export function clientStore({ kind, client, inboxes, watch }: ClientParts): Store {
  const listeners = new Set<(connection: "commands" | "inbox") => void>();
  const notify = (connection: "commands" | "inbox"): void => {
    for (const listener of listeners) listener(connection);
  };
  const hub = inboxes(() => notify("inbox"));
  const unwatch = watch(() => notify("commands"));
  const openShard = hub.openShard?.bind(hub);

  return {
    kind,
    run: (script, keys, args, timeoutMs) => runScript(client, script, keys, args, timeoutMs),
    inbox: (channel, onMessage, timeoutMs) => hub.open(channel, onMessage, timeoutMs),
    ...(openShard === undefined ? {} : { shardInbox: openShard }),
    onReconnect(listener) {
      // A function of its own: the same listener may be given twice.
      const own = (connection: "commands" | "inbox"): void => listener(connection);
      listeners.add(own);
      return () => void listeners.delete(own);
    },
    async close() {
      unwatch();
      listeners.clear();
      await hub.close();
    },
  };
}

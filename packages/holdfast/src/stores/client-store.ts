import type { Store } from "../core/store.js";
import { type Ear, type EarEvents, InboxHub } from "./inbox-hub.js";
import { runScript, type ScriptClient } from "./script-runner.js";

/** Makes a connection that listens, and reports to `events`. What it makes belongs to the store. */
export type OpenEar = (events: EarEvents) => Ear | Promise<Ear>;

/** What differs from one client library to the next. */
export interface ClientParts {
  readonly kind: string;
  readonly client: ScriptClient;
  readonly openEar: OpenEar;
  /** Calls `onBack` whenever the caller's client is ready again after a loss; answers with what takes that back. */
  watch(onBack: () => void): () => void;
}

/** The store port over the parts of one client library. */
export function clientStore({ kind, client, openEar, watch }: ClientParts): Store {
  const listeners = new Set<(connection: "commands" | "inbox") => void>();
  const notify = (connection: "commands" | "inbox"): void => {
    for (const listener of listeners) listener(connection);
  };
  const hub = new InboxHub(openEar, () => notify("inbox"));
  const unwatch = watch(() => notify("commands"));

  return {
    kind,
    run: (script, keys, args, timeoutMs) => runScript(client, script, keys, args, timeoutMs),
    inbox: (channel, onMessage, timeoutMs) => hub.open(channel, onMessage, timeoutMs),
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

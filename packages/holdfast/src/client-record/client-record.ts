/** Who a client is, kept in Redis for people who ask who holds a lock. */
import { hostname } from "node:os";
import { call } from "../core/call.js";
import type { ClientRecord, ClientRecords } from "../core/presence.js";
import type { Runtime } from "../core/runtime.js";
import type { Store } from "../core/store.js";
import { clientRecordAnnounce, clientRecordRead } from "../generated/scripts.js";

/** Version of this library, as written into the record; a test holds it to package.json. */
export const VERSION = "0.1.0";

/** Keeps the records under `<prefix>:client:<clientId>`. */
export function clientRecords(
  store: Store,
  facts: {
    readonly prefix: string;
    readonly clientId: string;
    readonly clientName: string;
    readonly timeoutMs: number;
    readonly runtime: Pick<Runtime, "monotonicMs">;
  },
): ClientRecords {
  const { runtime } = facts;
  const madeAtMs = runtime.monotonicMs();
  const key = (clientId: string): string => `${facts.prefix}:client:${clientId}`;
  return {
    async announce(keepMs) {
      const own = key(facts.clientId);
      const ageMs = Math.max(0, Math.round(runtime.monotonicMs() - madeAtMs));
      await call(
        { store, name: own },
        clientRecordAnnounce,
        { client: own },
        {
          ...{ host: hostname(), pid: process.pid, name: facts.clientName, version: VERSION, ageMs, keepMs },
          timeouts: timeoutsOf(store),
        },
        facts.timeoutMs,
      );
    },
    async read(clientId, timeoutMs): Promise<ClientRecord | undefined> {
      const client = key(clientId);
      const reply = await call({ store, name: client }, clientRecordRead, { client }, {}, timeoutMs);
      if (reply.outcome === "unknown") return undefined;
      const [host = "", process = "", name = ""] = reply.fields;
      return { host, pid: Number(process), clientName: name === "" ? undefined : name };
    },
  };
}

/** For the doctor. What a store of the user's own throws must not keep the record from being written. */
function timeoutsOf(store: Store): string {
  try {
    return JSON.stringify(store.clientTimeouts?.()) ?? "";
  } catch {
    return "";
  }
}

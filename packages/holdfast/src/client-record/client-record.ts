/**
 * Client records say which process a client belongs to and which protocol version it uses. They are stored on the
 * server, so that people can see who holds a lock, and so that other versions of Holdfast can detect a conflict.
 */
import { hostname } from "node:os";
import { call } from "../core/call.js";
import { ProtocolError, StoreError, warn } from "../core/errors.js";
import type { Guard, Question } from "../core/guard.js";
import type { Runtime } from "../core/runtime.js";
import { type ClientRecord, type ClientRecords, KEEP_MS } from "../core/session.js";
import type { Store } from "../core/store.js";
import { clientRecordAnnounce, clientRecordMark, clientRecordRead } from "../generated/client-record.js";

/** Version of this library, as written into the record. A test checks that it matches package.json. */
export const VERSION = "0.1.0";

/** Major version of the formats of keys, messages and owner ids. See docs/adr/134-protocol-versions.md. */
export const PROTOCOL = 1;

/** Minimum time for which this client's mark keeps out clients of other protocol versions, in ms. */
const MARK_MS = KEEP_MS;

/** The facts that a client writes into its record. */
export interface ClientFacts {
  readonly prefix: string;
  readonly clientId: string;
  readonly clientName: string;
  readonly timeoutMs: number;
  readonly runtime: Pick<Runtime, "monotonicMs" | "wallMs">;
}

/** The records on one server, and the check for another protocol version there. */
export interface RecordsOnServer {
  readonly records: ClientRecords;
  readonly question: Question;
}

/** Keeps the records under `<prefix>:client:<clientId>`, and the protocol marker under `<prefix>:protocol`. */
export function clientRecords(store: Store, facts: ClientFacts): RecordsOnServer {
  const { runtime, prefix, clientId, timeoutMs } = facts;
  const madeAtMs = runtime.monotonicMs();
  const key = (id: string): string => `${prefix}:client:${id}`;
  let lastKeepMs = MARK_MS;
  let nonces: readonly string[] = [];
  const records: ClientRecords = {
    async announce(keepMs) {
      lastKeepMs = keepMs;
      const own = key(clientId);
      const ageMs = Math.max(0, Math.round(runtime.monotonicMs() - madeAtMs));
      const nonce = nonceOf(runtime);
      nonces = [nonce, ...nonces.slice(0, NONCES - 1)];
      const reply = await call(
        { store, name: own },
        clientRecordAnnounce,
        { client: own },
        {
          host: hostname(),
          pid: process.pid,
          name: facts.clientName,
          version: VERSION,
          protocol: PROTOCOL,
          ageMs,
          keepMs,
          nonces: ` ${nonces.join(" ")} `,
          timeouts: timeoutsField(store),
        },
        timeoutMs,
      );
      // If an earlier write runs after a later one, it finds a nonce that is not in its own list, so ignore its reply.
      const isLatest = nonces[0] === nonce;
      if (reply.outcome === "shared" && isLatest) warnOfSharedId(clientId, reply.words);
    },
    async read(id, readTimeoutMs): Promise<ClientRecord | undefined> {
      const client = key(id);
      const reply = await call({ store, name: client }, clientRecordRead, { client }, {}, readTimeoutMs);
      if (reply.outcome === "unknown") return undefined;
      const [host = "", process = "", name = "", , protocol] = reply.fields;
      return { host, pid: Number(process), clientName: name === "" ? undefined : name, protocol: Number(protocol) };
    },
  };
  const question: Question = {
    countsForMs: MARK_MS,
    async ask() {
      const marker = `${prefix}:protocol`;
      const args = { protocol: PROTOCOL, clientId, version: VERSION, keepMs: lastKeepMs };
      const reply = await call({ store, name: marker }, clientRecordMark, { marker }, args, timeoutMs).catch(passed);
      if (reply?.outcome !== "foreign") return undefined;
      const [otherProtocol, otherId = "", otherVersion = ""] = reply.words;
      const record = await records.read(otherId, timeoutMs).catch(() => undefined);
      const conflict = {
        ...{ protocol: PROTOCOL, version: VERSION, otherProtocol: Number(otherProtocol), otherVersion },
        ...{ clientId: otherId, host: record?.host, pid: record?.pid, prefix, unusedInMs: reply.leftMs },
      };
      return (lockName) => new ProtocolError(lockName, conflict);
    },
  };
  return { records, question };
}

/** Returns the nonce of a write. It is not a random number, because copies of a process may draw the same numbers. */
function nonceOf(runtime: ClientFacts["runtime"]): string {
  return `${Math.round(runtime.monotonicMs() * 1_000).toString(36)}-${runtime.wallMs().toString(36)}`;
}

/** Number of nonces to remember. One is not enough: a promoted replica may lack writes, and a request may run late. */
const NONCES = 30;

const warned = new Set<string>();

function warnOfSharedId(clientId: string, [host = "", pid = ""]: readonly string[]): void {
  if (warned.has(clientId)) return;
  warned.add(clientId);
  warn(
    "HOLDFAST_SHARED_ID",
    `Holdfast client ${clientId} runs in two processes: this one, and pid ${pid} on ${host}.`,
    "Both may hold the same lock, with the same token. A running process was copied, for example with a VM snapshot or CRIU. " +
      "Restart both, and call createHoldfast only after the copy.",
  );
}

/**
 * Ignores a permanent failure, for example if the ACL user may not access the key. The check is repeated only when the
 * record is next written.
 */
function passed(error: unknown): undefined {
  if (!(error instanceof StoreError) || error.transient) throw error;
}

/** Wraps `records` so that each write also makes the guard repeat the checks whose answers expire. */
export function renewing(records: ClientRecords, guard: Guard): ClientRecords {
  return {
    announce(keepMs) {
      const announced = records.announce(keepMs);
      guard.renew();
      return announced;
    },
    read: (clientId, timeoutMs) => records.read(clientId, timeoutMs),
  };
}

/**
 * The client's timeouts, for `holdfast doctor`. An error from a custom store must not prevent the record from being
 * written.
 */
function timeoutsField(store: Store): string {
  try {
    return JSON.stringify(store.clientTimeouts?.()) ?? "";
  } catch {
    return "";
  }
}

/** Checks what the clients of this database report about themselves. */
import { type Check, found, ok, skipped, unknown, type Verdict } from "../check.js";
import type { ProtocolFacts, TimeoutFacts } from "../facts.js";
import { counted, few, fixFor, MORE_TIME } from "../words.js";

/** Whether each client replaces a connection that is dead but was never closed. */
export const clientTimeouts: Check = {
  id: "client-timeouts",
  reads: "the socket timeout and keepalive that each client has recorded",
  levels: "warning if a client would not detect a dead connection",
  risk: "After a network failure, this client's process loses its leases. It cannot acquire new ones for about 15 minutes, or until you restart it.",
  fix: "set the option that docs/half-open-connections.md names for the client library",
  families: ["keys"],
  run({ role, keys, hidden }) {
    if (role === "slave") return skipped("a replica");
    if (keys === undefined)
      return unknown(
        `keys could not be listed (${hidden.get("keys") ?? "no reply to SCAN"})`,
        fixFor(hidden.get("keys"), "grant SCAN to this user"),
      );
    const { clients, timeouts = [] } = keys;
    const exposed = timeouts.filter(({ cure }) => cure !== undefined);
    const cures = [...new Set(exposed.map(({ cure = "" }) => cure))];
    const verdicts = cures.flatMap((cure) => {
      const its = exposed.filter((one) => one.cure === cure);
      const what = its.length === 1 ? "a client would keep" : `${its.length} clients would keep`;
      return found("warning", `${what} a dead connection: ${few(its.map(described))}`, {
        fix: `${cure} (docs/half-open-connections.md)`,
      });
    });
    if (verdicts.length > 0) return verdicts;
    const silent = clients.length - timeouts.length;
    const rest = silent > 0 ? `, ${counted(silent, "client")} for which this is unknown` : "";
    const measured = `${counted(timeouts.length, "client")} that replace${timeouts.length === 1 ? "s" : ""} a dead connection${rest}`;
    return keys.areRecordsHidden === true ? unknown(measured, "grant HMGET to this user") : ok(measured);
  },
};

function described({ client, library, socketTimeoutMs, keepAliveMs }: TimeoutFacts): string {
  const timeout = socketTimeoutMs === undefined ? "no socket timeout" : `socket timeout ${socketTimeoutMs} ms`;
  const keepAlive = keepAliveMs === undefined ? "" : `, keepalive ${keepAliveMs} ms`;
  return `${client} (${library}, ${timeout}${keepAlive})`;
}

/** Whether all clients use protocols that can share locks. */
export const protocols: Check = {
  id: "protocols",
  reads: "the protocol version that each client has recorded",
  levels: "warning if clients use incompatible versions; critical if one of them uses protocol 0",
  risk: "While clients of one version are in use, calls of the other that acquire or wait reject with ProtocolError.",
  fix: "stop all clients of the older version, and then start the newer ones (docs/upgrading.md)",
  families: ["keys"],
  run(facts, { nodes }) {
    const { role, keys, hidden } = facts;
    if (role === "slave") return skipped("a replica");
    if (keys === undefined)
      return unknown(
        `keys could not be listed (${hidden.get("keys") ?? "no reply to SCAN"})`,
        fixFor(hidden.get("keys"), "grant SCAN to this user"),
      );
    // The records of a cluster's clients are on different nodes, so this check compares them all and reports once.
    const read = nodes.filter((node) => node.role !== "slave" && node.keys !== undefined);
    if (facts !== read[0]) return [];
    const clients = new Set(read.flatMap((node) => node.keys?.clients ?? []));
    const known = new Map(read.flatMap((node) => node.keys?.protocols ?? []).map((one) => [one.id, one]));
    const incompatible = incompatibleAmong([...known.values()]);
    // The clients may be on several nodes.
    if (incompatible.length > 0) return incompatible.map((verdict) => ({ ...verdict, node: "all" }));
    const measured = measuredOf([...known.values()], clients.size);
    if (read.some((node) => node.keys?.areRecordsHidden === true)) return unknown(measured, "grant HMGET to this user");
    return read.every((node) => node.keys?.isComplete === true)
      ? ok(measured)
      : unknown(`${measured} among the keys that were read`, MORE_TIME);
  },
};

function incompatibleAmong(clients: readonly ProtocolFacts[]): Verdict[] {
  const versions = versionsOf(clients);
  // Protocol 0 is the one before versions were recorded. It is compatible with 1.
  const count = new Set(versions.map((protocol) => Math.max(1, protocol))).size;
  if (count < 2) return [];
  const who = versions.map((protocol) => {
    return `protocol ${protocol}: ${few(clients.filter((one) => one.protocol === protocol).map(withVersion))}`;
  });
  const measured = `clients of ${count} incompatible protocols: ${who.join("; ")}`;
  if (versions[0] !== 0) return found("warning", measured);
  return found("critical", measured, {
    risk: "No server refuses clients with protocol 0, so two clients may hold the same lock.",
  });
}

function measuredOf(known: readonly ProtocolFacts[], clients: number): string {
  const silent = clients - known.length;
  const rest = silent > 0 ? `${counted(silent, "client")} for which this is unknown` : "";
  if (known.length === 0) return rest || "no clients";
  const versions = versionsOf(known);
  const used =
    versions.length > 1 ? `protocols ${versions.join(" and ")}, which work together` : `protocol ${versions[0]}`;
  return `${counted(known.length, "client")} with ${used}${rest && `, ${rest}`}`;
}

function versionsOf(clients: readonly ProtocolFacts[]): readonly number[] {
  return [...new Set(clients.map(({ protocol }) => protocol))].toSorted((a, b) => a - b);
}

function withVersion({ client, version }: ProtocolFacts): string {
  return version === "" ? client : `${client} (version ${version})`;
}

/** Checks what the clients of this database report about themselves. */
import { type Check, found, ok, skipped, unknown } from "../check.js";
import type { TimeoutFacts } from "../facts.js";
import { counted, few, fixFor } from "../words.js";

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
    return ok(
      `${counted(timeouts.length, "client")} that replace${timeouts.length === 1 ? "s" : ""} a dead connection${rest}`,
    );
  },
};

function described({ client, library, socketTimeoutMs, keepAliveMs }: TimeoutFacts): string {
  const timeout = socketTimeoutMs === undefined ? "no socket timeout" : `socket timeout ${socketTimeoutMs} ms`;
  const keepAlive = keepAliveMs === undefined ? "" : `, keepalive ${keepAliveMs} ms`;
  return `${client} (${library}, ${timeout}${keepAlive})`;
}

/** Checks whether replies arrive in time for all clients. */
import { formatMs } from "../../frame/durations.js";
import { type Check, found, ok, unknown, type Verdict } from "../check.js";
import { numberIn } from "../facts.js";
import { few, fixFor, millis } from "../words.js";

/** Checks how long replies take. */
export const latency: Check = {
  id: "latency",
  reads: "the p50, p99 and maximum of 200 round trips from this host, relative to `--lease`",
  levels: "warning if p99 is over a twentieth of the lease; critical if it is over a sixth",
  risk: "Renewals are late, so holders may lose their leases under load.",
  fix: "use a longer lease or a closer Redis. Also check SLOWLOG (see busy), the network, and whether this process itself was blocked",
  families: ["latency"],
  run({ latency: facts, hidden }, { leaseMs }) {
    if (facts === undefined)
      return unknown(
        `could not be measured (${hidden.get("latency") ?? "no reply to TIME"})`,
        fixFor(hidden.get("latency"), "grant TIME to this user"),
      );
    const measured = `p50 ${millis(facts.p50Ms)}, p99 ${millis(facts.p99Ms)}, longest ${millis(facts.maxMs)} of ${facts.count}, for a lease of ${formatMs(leaseMs)}`;
    if (facts.p99Ms > leaseMs / 6) return found("critical", measured);
    return facts.p99Ms > leaseMs / 20 ? found("warning", measured) : ok(measured);
  },
};

/** Commands that were slow more than a day ago say little about the current load. */
const RECENT_MS = 86_400_000;

/** Reports commands that block all other clients. */
export const busy: Check = {
  id: "busy",
  reads: "`busy-reply-threshold` (`lua-time-limit` before 7.0), SLOWLOG and LATENCY LATEST",
  levels: "warning if a script or command took more than a tenth of the lease within the last day",
  risk: "While a long script or command runs, other requests wait or fail with BUSY, so holders may lose their leases.",
  fix: "find the client that sends the long command, or use a separate Redis for locks",
  families: ["slow"],
  run({ slow, config, hidden, clock }, { leaseMs }) {
    if (slow === undefined)
      return unknown(
        `the server does not show SLOWLOG (${hidden.get("slow") ?? "no reply"})`,
        fixFor(hidden.get("slow"), "grant SLOWLOG GET to this user, or look at the service's own charts"),
      );
    const nowMs = Date.now() + (clock?.offsetMs ?? 0);
    const isLong = (tookMs: number, atMs: number): boolean => tookMs > leaseMs / 10 && nowMs - atMs < RECENT_MS;
    const long = slow.entries.filter(({ tookMs, atMs }) => isLong(tookMs, atMs));
    const spikes = slow.spikes.filter(({ worstMs, atMs }) => isLong(worstMs, atMs));
    const limit = config.get("busy-reply-threshold") ?? config.get("lua-time-limit");
    const busyNote = limit === undefined ? "" : `; other clients get BUSY after ${limit} ms of a script`;
    if (long.length === 0 && spikes.length === 0) {
      return ok(`no command took over ${millis(leaseMs / 10)} within the last day${busyNote}`);
    }
    const textOf = ({ command, tookMs, atMs }: (typeof long)[number]): string =>
      `${command} ${millis(tookMs)} at ${instant(atMs)}`;
    const worst = long.toSorted((a, b) => b.tookMs - a.tookMs).map(textOf);
    const events = spikes.map(({ event, worstMs, atMs }) => `${event} ${millis(worstMs)}, last at ${instant(atMs)}`);
    return found("warning", `${few([...worst, ...events])}${long.some(({ isScript }) => isScript) ? busyNote : ""}`);
  },
};

function instant(atMs: number): string {
  return new Date(atMs).toISOString().replace(/\.\d+Z$/, "Z");
}

/** Whether the server has room for more clients and keeps idle connections open. */
export const connections: Check = {
  id: "connections",
  reads: "`maxclients`, `connected_clients`, `timeout` and `tcp-keepalive`",
  levels:
    "warning if over 80% of `maxclients` are connected, or if `timeout` closes idle connections within 300 s; info if `tcp-keepalive` is 0",
  risk: "During a deploy, old and new processes may together exceed the limit. Then acquires fail.",
  fix: "raise maxclients and the server's open-file limit",
  families: [],
  run({ info, config }) {
    const most = numberIn(info, "maxclients") ?? numberIn(config, "maxclients");
    const present = numberIn(info, "connected_clients");
    const idleS = numberIn(config, "timeout");
    const keepaliveS = numberIn(config, "tcp-keepalive");
    const verdicts: Verdict[] = [];
    const measured = `${present ?? "?"} of ${most ?? "?"} clients`;
    if (present !== undefined && most !== undefined && present > 0.8 * most)
      verdicts.push(...found("warning", measured));
    if (idleS !== undefined && idleS > 0 && idleS < 300) {
      verdicts.push(
        ...found("warning", `timeout ${idleS} s: idle connections are closed after that`, {
          risk: "The server disconnects a process that uses no lock for a while. Its next acquire needs a new connection.",
          fix: "CONFIG SET timeout 0",
        }),
      );
    }
    if (keepaliveS === 0) {
      verdicts.push(
        ...found("info", "tcp-keepalive 0: the server never notices when a host disappears", {
          risk: "Waiters of such a host count as subscribed forever, and each of its processes costs the others 3 s for each lock on which it waits.",
          fix: "CONFIG SET tcp-keepalive 60",
        }),
      );
    }
    if (verdicts.length > 0) return verdicts;
    if (present === undefined || most === undefined) return unknown(measured, "grant INFO to this user");
    return ok(
      `${measured}${idleS === undefined ? "" : `, timeout ${idleS}`}${keepaliveS === undefined ? "" : `, tcp-keepalive ${keepaliveS} s`}`,
    );
  },
};

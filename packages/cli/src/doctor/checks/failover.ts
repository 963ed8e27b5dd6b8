/** Checks which servers are primary and replica, and what a failover between them costs. */
import { formatMs } from "../../frame/durations.js";
import { type Check, type Examination, found, ok, skipped, unknown, type Verdict } from "../check.js";
import { type LineageFacts, type NodeFacts, numberIn } from "../facts.js";
import { bytes, counted, few, fixFor } from "../words.js";

const PERMIT_INFO = "grant INFO to this user";

/** Whether a server is still waiting out leases that it may have forgotten when its role or process changed. */
export const grace: Check = {
  id: "grace",
  reads: "the marker `<prefix>:lineage`, `run_id`, `master_replid2` and the uptime",
  levels:
    "warning if the server currently grants no new locks; info if it was promoted, or has been up for less than the longest lease",
  risk: 'The server grants no new locks until the quiet time is over. With failoverGrace: "off", it grants immediately, and may grant a lock that is still held.',
  fix: 'wait. Holders keep and renew their locks. To prevent early grants, use failoverGrace: "auto", or "strict" if the server writes nothing to disk',
  families: ["lineage"],
  run({ role, lineage, hidden, topology }, { leaseMs }) {
    if (role === "slave") return skipped("a replica");
    if (lineage === undefined) {
      const why = hidden.get("lineage");
      return unknown(
        `cannot tell whether this server took over from another${why === undefined ? "" : ` (${why})`}`,
        `${PERMIT_INFO}: programs cannot see it without INFO either`,
      );
    }
    return topology === "redlock" && isAlone(lineage) ? alone(lineage) : gracePeriod(lineage, leaseMs);
  },
};

/** Maximum time that a server of a quorum waits for the others. Same value as in lua/lineage-verdict. */
const ALONE_MS = 3_600_000;

/**
 * Whether this server of a quorum may have forgotten leases, and too few other servers have reported their longest
 * lease.
 */
function isAlone({ run, nowMs, marker }: LineageFacts): boolean {
  return marker?.pending === run && marker.run !== run && marker.heard !== run && marker.sinceMs + ALONE_MS > nowMs;
}

function alone({ nowMs, marker }: LineageFacts): Verdict[] {
  const longestMs = Math.max(marker?.longestMs ?? 0, ALONE_MS);
  const restMs = Math.min(longestMs, (marker?.sinceMs ?? 0) + longestMs - nowMs);
  return found(
    "warning",
    `quiet for ${formatMs(restMs)} more: it was restarted, and too few other servers have reported the longest lease`,
    {
      risk: "It does not vote until a majority of the servers that were not restarted replies.",
      fix: "start the missing servers; replace a server that is gone for good with an empty one",
    },
  );
}

function gracePeriod({ run, isPromoted, upMs, nowMs, marker }: LineageFacts, leaseMs: number): Verdict[] {
  const how = isPromoted ? "was promoted" : `was started ${formatMs(upMs)} ago`;
  const longestMs = marker?.longestMs ?? leaseMs;
  if (marker !== undefined && marker.run !== run) {
    if (marker.pending !== run) {
      const what = isPromoted ? "promoted" : `restarted (${formatMs(upMs)} ago)`;
      return found("warning", `has been ${what} since it last granted locks; no program has sent it a request yet`, {
        risk: `The first request starts a quiet time of up to ${formatMs(longestMs)}, during which no new locks are granted.`,
      });
    }
    // Setting the clock back does not extend the wait.
    const restMs = Math.min(longestMs, marker.sinceMs + longestMs - nowMs);
    if (restMs > 0) {
      const until = new Date(nowMs + restMs).toISOString().replace(/\.\d+Z$/, "Z");
      return found("warning", `quiet for ${formatMs(restMs)} more, until ${until} by its clock: it ${how}`);
    }
  }
  if (isPromoted) {
    const isNew = marker === undefined;
    return found(
      "info",
      isNew ? "was promoted, and no program has sent it a request yet" : "was promoted; its quiet time is over",
      {
        risk: isNew
          ? "The first program that sends a request starts a quiet time of its longest lease, during which no new locks are granted."
          : "None by itself: what the former primary granted is over by now, or was restored by its holder.",
        fix: 'nothing to do, unless a program uses failoverGrace: "off"',
      },
    );
  }
  if (upMs < longestMs) {
    return found("info", `started ${formatMs(upMs)} ago, less than the longest lease (${formatMs(longestMs)})`, {
      risk: 'If it lost its grants, those leases are still running. With "strict", and with Redlock, it grants nothing until they are over.',
      fix: 'nothing to do but wait; use "strict" if the server restarts without persistence',
    });
  }
  return ok(`running for ${formatMs(upMs)}, longest lease ${formatMs(longestMs)}`);
}

/** Whether the URL leads to a server that accepts writes. */
export const role: Check = {
  id: "role",
  reads: "whether the server in the URL replies, and its `ROLE`",
  levels:
    "critical if that server is a replica or a Sentinel, or does not reply, or if no majority of a quorum replies; warning if it is still loading its data, or if a replica or one server of a quorum does not reply",
  risk: "Every acquire fails with READONLY, or goes to a server that is no longer the primary.",
  fix: "point the URL at the primary, or use --sentinel NAME or --cluster, which find it",
  families: [],
  run(facts, { nodes }) {
    const { isGiven, topology, unreachable, hidden } = facts;
    if (unreachable !== undefined) return [...noReply(facts, unreachable), ...noMajority(facts, nodes)];
    if (facts.role === undefined) {
      return unknown(
        `the server does not report its role (${hidden.get("ROLE") ?? "no reply to ROLE"})`,
        fixFor(hidden.get("ROLE"), "grant ROLE or INFO to this user"),
      );
    }
    if (facts.role === "sentinel") {
      return found("critical", "a Sentinel, which keeps no keys", { fix: "pass --sentinel NAME" });
    }
    if (facts.info.get("loading") === "1") {
      return found("warning", "it is still reading its data from disk", {
        risk: "The server replies LOADING: acquires wait, and leases are not renewed.",
        fix: "wait until it has read its data",
      });
    }
    if (facts.role !== "slave") return ok("primary");
    const of = `${facts.info.get("master_host") ?? "?"}:${facts.info.get("master_port") ?? "?"}`;
    // A cluster client follows the slots, so the role that the node had when it was listed does not matter.
    if (!isGiven || topology === "cluster") return ok(`replica of ${of}`);
    return found("critical", `a replica of ${of}`, {
      ...(topology === "sentinel" ? { fix: "ask the Sentinels again: SENTINEL GET-MASTER-ADDR-BY-NAME" } : {}),
    });
  },
};

function noReply({ isGiven, topology }: NodeFacts, why: string): Verdict[] {
  const isOneOfMany = topology === "redlock";
  const severity = isGiven && !isOneOfMany ? "critical" : "warning";
  const risk = isGiven
    ? isOneOfMany
      ? "The other servers must form a majority without it. If one more fails, they may not."
      : "No lock that belongs there can be taken, and leases that it keeps cannot be renewed."
    : "It cannot take over. If it is only unreachable from here, it was not examined.";
  return found(severity, `no reply: ${why}`, { risk, fix: "start it, or repair the network path to it" });
}

/** Reports once, with the first silent server, that too few servers of a quorum reply. */
function noMajority(facts: NodeFacts, nodes: readonly NodeFacts[]): Verdict[] {
  if (facts.topology !== "redlock" || !facts.isGiven) return [];
  const given = nodes.filter(({ isGiven }) => isGiven);
  const silent = given.filter(({ unreachable }) => unreachable !== undefined);
  const replying = given.length - silent.length;
  const majority = Math.floor(given.length / 2) + 1;
  if (replying >= majority || silent[0] !== facts) return [];
  const texts = {
    risk: "No Redlock can be acquired or renewed.",
    fix: `start servers until at least ${majority} reply, or repair the network path to them`,
  };
  return found("critical", `no majority replies: ${replying} of ${given.length} servers`, texts).map((verdict) => ({
    ...verdict,
    node: "all",
  }));
}

/** Whether an isolated primary stops granting locks. */
export const replicas: Check = {
  id: "replicas",
  reads: "connected replicas, `min-replicas-to-write` and `min-replicas-max-lag`",
  levels:
    "info without replicas; otherwise warning if the minimum is 0, the maximum lag is not below the lease, or the server is older than Redis 7",
  risk: "A failover may lose acknowledged leases. A primary that is cut off continues to grant locks to clients that still reach it.",
  fix: "set min-replicas-to-write to 1 and min-replicas-max-lag to a few seconds, and pass replicas: { atLeast } in your programs. This only reduces the risk, so also use fencing tokens, or use Redlock",
  families: [],
  run(facts, examination) {
    if (facts.role === "slave") return skipped("a replica");
    const count = numberIn(facts.info, "connected_slaves");
    if (count === undefined) return unknown("the server does not show INFO replication", PERMIT_INFO);
    if (facts.topology === "redlock") {
      return count === 0 ? ok("no replicas, as expected") : followers(facts, count, examination);
    }
    if (count > 0) return followers(facts, count, examination);
    return found("info", "no replicas", {
      risk: "While this server is down, no lock is granted and no lease is renewed.",
      fix: "nothing to do if you accept that; otherwise add a replica and Sentinel, or use a cluster",
    });
  },
};

function followers({ info, config }: NodeFacts, count: number, { leaseMs }: Examination): Verdict[] {
  // INFO shows the number of good replicas only if a minimum is configured.
  const isSet = info.has("min_slaves_good_slaves") || (numberIn(config, "min-replicas-to-write") ?? 0) > 0;
  const least = numberIn(config, "min-replicas-to-write") ?? (isSet ? "set" : 0);
  const lagS = numberIn(config, "min-replicas-max-lag");
  const measured = `${counted(count, "replica")}, min-replicas-to-write ${least}${lagS === undefined ? "" : `, min-replicas-max-lag ${lagS} s`}`;
  if (!isSet) return found("warning", measured);
  if (Number.parseInt(info.get("redis_version") ?? "7", 10) < 7) {
    return found("warning", `${measured}, which does not stop scripts before Redis 7`, {
      fix: "upgrade to Redis 7 or later; until then use Sentinel, whose failover ends the old primary, and fencing tokens",
    });
  }
  if (lagS === undefined || lagS * 1_000 < leaseMs) return ok(measured);
  return found("warning", `${measured}, which is not below the lease of ${formatMs(leaseMs)}`, {
    fix: "set min-replicas-max-lag to less than the leases in use",
  });
}

/** How many writes a failover would lose. */
export const replicaLag: Check = {
  id: "replica-lag",
  reads: "`master_repl_offset` and each replica's `offset` and `lag`",
  levels: "warning if a replica is over 1 s or 1 MB behind, or not connected",
  risk: "A failover loses grants that the replica has not received.",
  fix: "check the replica's network and disk, and raise repl-backlog-size to avoid full copies",
  families: [],
  run({ role: its, info }) {
    if (its === "slave") {
      if (info.get("master_link_status") === "up") return ok("connected to its primary");
      if (!info.has("master_link_status")) return unknown("the server does not show INFO replication", PERMIT_INFO);
      const since = info.get("master_link_down_since_seconds");
      return found("warning", `not connected to its primary${since === undefined ? "" : ` for ${since} s`}`);
    }
    const offset = numberIn(info, "master_repl_offset");
    if (offset === undefined) return unknown("the server does not show INFO replication", PERMIT_INFO);
    const all = replicasIn(info);
    if (all.length === 0) return ok("no replicas");
    const late = all.filter((one) => one.lagS > 1 || offset - one.offset > 1_000_000 || one.state !== "online");
    const textOf = (one: ReplicaLine): string =>
      one.state === "online"
        ? `${one.address} ${bytes(Math.max(0, offset - one.offset))} and ${one.lagS} s behind`
        : `${one.address} is ${one.state}`;
    const measured = few((late.length > 0 ? late : all).map(textOf));
    return late.length > 0 ? found("warning", measured) : ok(measured);
  },
};

/** What a primary reports about one replica. */
export interface ReplicaLine {
  readonly address: string;
  readonly host: string;
  readonly port: number;
  readonly state: string;
  readonly offset: number;
  readonly lagS: number;
}

/** The replicas that INFO replication lists. */
export function replicasIn(info: ReadonlyMap<string, string>): ReplicaLine[] {
  const lines: ReplicaLine[] = [];
  for (let at = 0; ; at += 1) {
    const line = info.get(`slave${at}`);
    if (line === undefined) return lines;
    const fields = new Map(line.split(",").map((field) => field.split("=", 2) as [string, string]));
    const host = fields.get("ip") ?? "";
    const port = Number(fields.get("port") ?? 0);
    lines.push({
      address: `${host}:${port}`,
      host,
      port,
      state: fields.get("state") ?? "?",
      offset: Number(fields.get("offset") ?? 0),
      lagS: Number(fields.get("lag") ?? 0),
    });
  }
}

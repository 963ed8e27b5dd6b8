/** Checks whether servers that work together are set up correctly. */
import { type Check, found, ok, skipped, unknown, type Verdict } from "../check.js";
import { type NodeFacts, numberIn } from "../facts.js";
import { counted, few, fixFor } from "../words.js";

const ALL_SLOTS = 16_384;

/** Whether a cluster serves every name. */
export const cluster: Check = {
  id: "cluster",
  reads:
    "`cluster_state`, slots without a server, slots being moved, sharded inboxes, and whether all keys of a lock are in one slot",
  levels:
    "critical if the state is not ok, a slot has no server, keys are in other slots than expected, or --cluster is missing; warning if Redis is older than 7.0, or slots are being moved",
  risk: "Locks in the affected slots can be neither acquired nor renewed (CLUSTERDOWN, TRYAGAIN).",
  fix: "start the nodes that are down, or move their slots to others (redis-cli --cluster check, --cluster fix). Finish any resharding",
  families: ["cluster", "inbox"],
  run(facts) {
    const { topology, cluster: its, info, inbox, role, hidden } = facts;
    if (topology !== "cluster") {
      if (info.get("cluster_enabled") !== "1") return skipped("not a cluster");
      return found("critical", "a node of a cluster, and --cluster was not given", {
        risk: "Requests for locks in slots of other nodes fail with MOVED.",
        fix: "pass --cluster",
      });
    }
    if (its === undefined) {
      return unknown(
        `the server does not show its cluster (${hidden.get("cluster") ?? "no reply"})`,
        fixFor(hidden.get("cluster"), "grant CLUSTER INFO to this user"),
      );
    }
    const state = its.info.get("cluster_state") ?? "not shown";
    const assigned = numberIn(its.info, "cluster_slots_assigned") ?? 0;
    const lost = ALL_SLOTS - assigned + (numberIn(its.info, "cluster_slots_fail") ?? 0);
    const measured = `cluster_state ${state}, ${lost === 0 ? "all slots served" : `${counted(lost, "slot")} without a server`}`;
    if (state !== "ok" || lost > 0) return found("critical", measured);
    if (its.misplaced.length > 0) {
      return found("critical", `the server maps ${few(its.misplaced)} to a different slot than the client`, {
        risk: "The keys of one lock must be in one slot, or no script can use them together.",
        fix: "look for a proxy that changes keys",
      });
    }
    const verdicts: Verdict[] = [];
    if (its.moving.length > 0)
      verdicts.push(
        ...found("warning", `${counted(its.moving.length, "slot")} being moved: ${few(its.moving.map(String))}`),
      );
    const major = Number((info.get("valkey_version") ?? info.get("redis_version") ?? "7").split(".")[0]);
    if (major < 7 || (role !== "slave" && inbox?.isSharded === false)) {
      verdicts.push(
        ...found("warning", `${measured}, without sharded channels`, {
          risk: "The server counts receivers on one node only. So it cannot skip a waiter that is gone, and the others wait until an unused lease ends.",
          fix: "upgrade all nodes to Redis 7 or later",
        }),
      );
    }
    return verdicts.length > 0 ? verdicts : ok(measured);
  },
};

/** Whether the servers of a quorum are independent. */
export const redlock: Check = {
  id: "redlock",
  reads: "the number of servers, their `run_id`, and which of them are replicas of others",
  levels:
    "critical if one server is listed twice, or is a replica of another; warning if there are fewer than 3 or an even number",
  risk: 'A "majority" may be one machine: then one failure stops all locks, or two clients may hold the same lock.',
  fix: "use 3 or 5 independent servers, none a replica of another, each with appendonly yes and appendfsync always",
  families: [],
  run(facts, { nodes }) {
    if (facts.topology !== "redlock") return skipped("no quorum of independent servers");
    const servers = nodes.filter(({ isGiven }) => isGiven);
    const at = servers.indexOf(facts);
    const verdicts: Verdict[] = at === 0 ? size(servers.length) : [];
    if (at < 0) return verdicts;
    for (const other of servers.slice(0, at)) {
      const why = dependence(facts, other);
      if (why !== undefined) verdicts.push(...found("critical", why));
    }
    if (verdicts.some(({ status }) => status === "finding")) return verdicts;
    if (!facts.info.has("run_id")) {
      return [
        ...verdicts,
        ...unknown("the server does not show INFO, so it may be one of the others", "grant INFO to this user"),
      ];
    }
    return [...verdicts, ...ok("an independent server")];
  },
};

function size(count: number): Verdict[] {
  if (count >= 3 && count % 2 === 1) return [];
  return found("warning", counted(count, "server"), {
    risk:
      count < 3
        ? "No server may fail, because a majority needs all of them."
        : "One server is unnecessary: an even number tolerates no more failures than the odd number below it.",
  }).map((verdict) => ({ ...verdict, node: "all" }));
}

function dependence(one: NodeFacts, other: NodeFacts): string | undefined {
  const run = one.info.get("run_id");
  if (run !== undefined && run === other.info.get("run_id")) return `the same server as ${other.node}`;
  const follows = (a: NodeFacts, b: NodeFacts): boolean =>
    a.info.get("role") === "slave" &&
    a.info.get("master_port") === b.info.get("tcp_port") &&
    a.info.get("master_replid") === b.info.get("master_replid");
  if (follows(one, other)) return `a replica of ${other.node}`;
  if (follows(other, one)) return `the primary of ${other.node}`;
  // Both servers replicate from a third one, or one replicates from the other through an address that does not match.
  const replid = one.info.get("master_replid");
  const isShared = replid !== undefined && /[^0]/.test(replid) && replid === other.info.get("master_replid");
  return isShared ? `it replicates the same data as ${other.node}` : undefined;
}

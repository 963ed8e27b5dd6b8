/** Tests what the checks conclude from facts, for each server version. No test sends a request. */
import type { DeadlockMember } from "holdfast/admin";
import { expect, test } from "vitest";
import type { Finding } from "../../src/doctor/check.js";
import { clientTimeouts } from "../../src/doctor/checks/clients.js";
import { judge } from "../../src/doctor/examine.js";
import type { NodeFacts, ProtocolFacts } from "../../src/doctor/facts.js";
import { CHECK_IDS, CHECKS } from "../../src/doctor/table.js";
import { MORE_TIME } from "../../src/doctor/words.js";
import { ALL_VERSIONS, closedUp, facts, managed, type Otherwise } from "./samples.js";

/** Returns `status` or severity and the measured values, for one check of one node. */
function verdicts(id: string, nodes: NodeFacts | readonly NodeFacts[], leaseMs = 30_000): string[] {
  const checks = CHECKS.filter((check) => check.id === id);
  expect(checks).toHaveLength(1);
  const all = Array.isArray(nodes) ? nodes : [nodes];
  return judge(all, { leaseMs, checks }).map(
    ({ status, severity, measured }) => `${status === "finding" ? severity : status}: ${measured}`,
  );
}

test.each(ALL_VERSIONS.filter((version) => version !== "Redis 6.0"))(
  "%s, configured for locks, has no warning and no critical finding",
  (version) => {
    const findings = judge([facts(version)]);
    expect(findings.filter(({ severity }) => severity !== "info")).toEqual([]);
    expect(findings.filter(({ status }) => status === "unknown")).toEqual([]);
    expect(new Set(findings.map(({ id }) => id))).toEqual(new Set(CHECK_IDS));
  },
);

test("a server that hides its settings passes no check that needs them", () => {
  const findings = judge([closedUp()]);
  expect(findings.filter(({ status }) => status === "ok")).toEqual([]);
  // Every unknown result must say how to make it known.
  for (const { id, status, fix } of findings) if (status === "unknown") expect(fix, id).toBeTruthy();
});

test("every finding has a risk and a fix, and a passed check has neither", () => {
  const bad = facts("Redis 7.0", { info: { maxmemory_policy: "allkeys-lru" } });
  for (const { status, risk, fix } of judge([bad])) {
    if (status === "finding") expect([risk, fix].every((text) => text.length > 5)).toBe(true);
    if (status === "ok") expect([risk, fix]).toEqual(["", ""]);
  }
});

/** Check, changed facts, beginning of the verdict. */
const ON_REDIS_7: readonly (readonly [string, string, Otherwise, string])[] = [
  [
    "eviction",
    "a policy other than noeviction",
    { info: { maxmemory_policy: "volatile-lru" } },
    "critical: maxmemory-policy volatile-lru",
  ],
  [
    "eviction",
    "the same without a memory limit",
    { info: { maxmemory_policy: "allkeys-lru", maxmemory: "0" } },
    "info: maxmemory-policy allkeys-lru, no maxmemory",
  ],
  ["memory", "four fifths full", { info: { used_memory: "81000000" } }, "warning: 81 MB of 100 MB used, 81%"],
  ["memory", "full", { info: { used_memory: "96000000" } }, "critical: 96 MB of 100 MB"],
  ["memory", "no limit", { info: { maxmemory: "0" } }, "ok: no maxmemory"],
  [
    "persistence",
    "everysec",
    { config: { appendfsync: "everysec" } },
    "warning: append-only file, appendfsync everysec",
  ],
  ["persistence", "always", {}, "info: append-only file, appendfsync always"],
  ["persistence", "none", { info: { aof_enabled: "0" }, config: { save: "" } }, "warning: nothing is written"],
  ["persistence", "snapshots", { info: { aof_enabled: "0" } }, "warning: snapshots only"],
  [
    "persistence",
    "a failed write",
    { info: { aof_last_write_status: "err" } },
    "critical: aof_last_write_status is err",
  ],
  [
    "persistence",
    "a failed snapshot",
    { info: { rdb_last_bgsave_status: "err" } },
    "critical: rdb_last_bgsave_status is err",
  ],
  [
    "restart-wipe",
    "replicas of a primary that writes nothing",
    { info: { aof_enabled: "0", connected_slaves: "2" }, config: { save: "" } },
    "critical: nothing is written to disk, 2 replicas",
  ],
  ["restart-wipe", "replicas and snapshots", { info: { aof_enabled: "0", connected_slaves: "2" } }, "ok: snapshots"],
  [
    "role",
    "a replica at the URL",
    { role: "slave", info: { role: "slave", master_host: "10.0.0.1", master_port: "6379" } },
    "critical: a replica of 10.0.0.1:6379",
  ],
  ["role", "a Sentinel at the URL", { role: "sentinel" }, "critical: a Sentinel"],
  [
    "role",
    "a replica of the server at the URL",
    { role: "slave", isGiven: false, info: { role: "slave" } },
    "ok: replica of",
  ],
  ["role", "a server that is loading its data", { info: { loading: "1" } }, "warning: it is still reading"],
  ["role", "no reply", { unreachable: "connect ECONNREFUSED" }, "critical: no reply: connect ECONNREFUSED"],
  [
    "role",
    "no reply from a server of a quorum",
    { unreachable: "ECONNREFUSED", topology: "redlock" },
    "warning: no reply",
  ],
  ["role", "no reply from a replica", { unreachable: "ECONNREFUSED", isGiven: false }, "warning: no reply"],
  ["replicas", "none", {}, "info: no replicas"],
  ["replicas", "none for a server of a quorum", { topology: "redlock" }, "ok: no replicas"],
  ["replicas", "no minimum", { info: { connected_slaves: "1" } }, "warning: 1 replica, min-replicas-to-write 0"],
  [
    "replicas",
    "a minimum",
    { info: { connected_slaves: "1", min_slaves_good_slaves: "1" }, config: { "min-replicas-to-write": "1" } },
    "ok: 1 replica, min-replicas-to-write 1",
  ],
  [
    "replicas",
    "a lag as long as the lease",
    { info: { connected_slaves: "1" }, config: { "min-replicas-to-write": "1", "min-replicas-max-lag": "30" } },
    "warning: 1 replica, min-replicas-to-write 1, min-replicas-max-lag 30 s",
  ],
  [
    "replica-lag",
    "far behind",
    { info: { slave0: "ip=10.0.0.6,port=6379,state=online,offset=3000000,lag=0" } },
    "warning: 10.0.0.6:6379 2.0 MB and 0 s behind",
  ],
  [
    "replica-lag",
    "late",
    { info: { slave0: "ip=10.0.0.6,port=6379,state=online,offset=5000000,lag=4" } },
    "warning: 10.0.0.6:6379 0 B and 4 s behind",
  ],
  [
    "replica-lag",
    "still synchronizing",
    { info: { slave0: "ip=10.0.0.6,port=6379,state=wait_bgsave,offset=0,lag=0" } },
    "warning: 10.0.0.6:6379 is wait_bgsave",
  ],
  [
    "replica-lag",
    "in sync",
    { info: { slave0: "ip=10.0.0.6,port=6379,state=online,offset=4999990,lag=0" } },
    "ok: 10.0.0.6:6379 10 B",
  ],
  [
    "replica-lag",
    "disconnected",
    { role: "slave", info: { master_link_status: "down", master_link_down_since_seconds: "17" } },
    "warning: not connected to its primary for 17 s",
  ],
  [
    "exposure",
    "open to a network",
    { anonymous: "admitted", config: { "protected-mode": "no", bind: "* -::*" } },
    "critical: no password, bind * -::*, protected-mode no",
  ],
  [
    "exposure",
    "bound to all addresses",
    { anonymous: "admitted", config: { "protected-mode": "no", bind: "" } },
    "critical: no password, bind to all addresses",
  ],
  [
    "exposure",
    "only protected mode",
    { anonymous: "admitted", config: { bind: "0.0.0.0" } },
    "info: no password, bind 0.0.0.0, protected-mode yes",
  ],
  [
    "exposure",
    "only this machine",
    { anonymous: "admitted", config: { bind: "127.0.0.1 -::1", "protected-mode": "no" } },
    "ok: no password, but it listens only on this machine",
  ],
  ["exposure", "refused by protected mode", { anonymous: "denied" }, "info: protected mode refuses this host"],
  ["exposure", "a default user without permissions", { anonymous: "restricted" }, "ok: no access to keys without"],
  [
    "acl",
    "no scripts",
    { permissions: { missing: ["+evalsha"], forbidden: [], untried: new Map() } },
    "critical: user locks lacks +evalsha",
  ],
  [
    "acl",
    "a command of a script",
    { permissions: { missing: ["+zpopmin"], forbidden: [], untried: new Map() } },
    "critical: user locks lacks +zpopmin",
  ],
  [
    "acl",
    "keys",
    { permissions: { missing: ["~hf:*"], forbidden: [], untried: new Map() } },
    "critical: user locks lacks ~hf:*",
  ],
  [
    "acl",
    "channels",
    { permissions: { missing: ["&hf:in:*"], forbidden: [], untried: new Map() } },
    "warning: user locks lacks &hf:in:*",
  ],
  [
    "acl",
    "INFO",
    { permissions: { missing: ["+info"], forbidden: [], untried: new Map() } },
    "warning: user locks lacks +info",
  ],
  [
    "acl",
    "SCAN",
    { permissions: { missing: ["+scan"], forbidden: [], untried: new Map() } },
    "info: user locks lacks +scan",
  ],
  [
    "acl",
    "a permission that could not be tested",
    { permissions: { missing: [], forbidden: [], untried: new Map([["+get", "LOADING"]]) } },
    "unknown: could not be tested: +get (LOADING)",
  ],
  [
    "scripts",
    "refused scripts",
    { scripts: { loaded: 0, refused: ["mutex/acquire: ERR unknown command"] } },
    "critical: 1 of 1 scripts are refused: mutex/acquire",
  ],
  [
    "scripts",
    "loaded but not callable",
    { scripts: { loaded: 48, refused: [], notCalled: "ERR no" } },
    "critical: scripts load but cannot be called",
  ],
  [
    "pubsub",
    "received but not counted",
    { inbox: { isSharded: false, receivers: 0, arrivedMs: 2 } },
    "critical: a message to a plain inbox arrived after 2.0 ms; 0 receivers",
  ],
  [
    "pubsub",
    "not received",
    { inbox: { isSharded: true, receivers: 1 } },
    "warning: a message to a sharded inbox did not arrive",
  ],
  [
    "pubsub",
    "late",
    { inbox: { isSharded: false, receivers: 1, arrivedMs: 130 } },
    "warning: a message to a plain inbox arrived after 130 ms",
  ],
  [
    "pubsub",
    "received by others",
    { inbox: { isSharded: false, receivers: 2, arrivedMs: 1 } },
    "warning: a message to a plain inbox arrived after 1.0 ms; 2 receivers",
  ],
  ["pubsub", "forbidden", { inbox: { isSharded: false, failure: "NOPERM" } }, "warning: no message could be sent"],
  ["cluster", "a node without --cluster", { info: { cluster_enabled: "1" } }, "critical: a node of a cluster"],
  ["cluster", "no cluster", {}, "skipped: not a cluster"],
  ["redlock", "no quorum", {}, "skipped: no quorum"],
  [
    "clock-skew",
    "far from this machine's clock",
    { clock: { offsetMs: -400, uncertaintyMs: 5, serverRanMs: 200, clientRanMs: 200 } },
    "warning: 400 ms behind this machine's clock",
  ],
  [
    "clock-skew",
    "within the uncertainty of a slow connection",
    { clock: { offsetMs: 400, uncertaintyMs: 300, serverRanMs: 200, clientRanMs: 200 } },
    "ok: 400 ms ahead of",
  ],
  [
    "clock-runs",
    "frozen",
    { clock: { offsetMs: 0, uncertaintyMs: 1, serverRanMs: 0, clientRanMs: 205 } },
    "critical: 0.00 ms passed on the server's clock while 205 ms passed here",
  ],
  [
    "clock-runs",
    "backwards",
    { clock: { offsetMs: 0, uncertaintyMs: 1, serverRanMs: -40, clientRanMs: 205 } },
    "critical: -40 ms passed",
  ],
  [
    "latency",
    "slow",
    { latency: { count: 200, p50Ms: 20, p99Ms: 1_600, maxMs: 2_000 } },
    "warning: p50 20 ms, p99 1.6 s",
  ],
  [
    "latency",
    "too slow",
    { latency: { count: 200, p50Ms: 20, p99Ms: 5_100, maxMs: 6_000 } },
    "critical: p50 20 ms, p99 5.1 s",
  ],
  [
    "stop-writes",
    "a failed snapshot",
    { info: { rdb_last_bgsave_status: "err" } },
    "critical: the last snapshot failed (err), stop-writes-on-bgsave-error yes",
  ],
  [
    "stop-writes",
    "a failed snapshot that does not stop writes",
    { info: { rdb_last_bgsave_status: "err" }, config: { "stop-writes-on-bgsave-error": "no" } },
    "ok: the last snapshot failed",
  ],
  [
    "stop-writes",
    "a failed snapshot without configured snapshots",
    { info: { rdb_last_bgsave_status: "err" }, config: { save: "" } },
    "ok: the last snapshot failed",
  ],
  ["connections", "almost all in use", { info: { connected_clients: "8100" } }, "warning: 8100 of 10000 clients"],
  ["connections", "idle connections are closed", { config: { timeout: "60" } }, "warning: timeout 60 s"],
  ["connections", "no keepalive", { config: { "tcp-keepalive": "0" } }, "info: tcp-keepalive 0"],
  ["version", "before 6.2", { info: { redis_version: "6.0.16" } }, "critical: Redis 6.0.16"],
];

test.each(ON_REDIS_7)("%s: %s", (id, _what, otherwise, begins) => {
  const [first = ""] = verdicts(id, facts("Redis 7.2", otherwise));
  expect(first.slice(0, begins.length)).toBe(begins);
});

test("a quorum without a majority is one critical finding, and one with a majority is none", () => {
  const server = (node: string, unreachable?: string): NodeFacts =>
    facts("Redis 7.2", { node, topology: "redlock", ...(unreachable === undefined ? {} : { unreachable }) });
  const [up, down, alsoDown] = [server("a:1"), server("b:1", "ECONNREFUSED"), server("c:1", "ECONNREFUSED")];
  expect(verdicts("role", [up, down, alsoDown])).toEqual([
    "ok: primary",
    "warning: no reply: ECONNREFUSED",
    "critical: no majority replies: 1 of 3 servers",
    "warning: no reply: ECONNREFUSED",
  ]);
  expect(verdicts("role", [up, server("b:1"), alsoDown])).toEqual([
    "ok: primary",
    "ok: primary",
    "warning: no reply: ECONNREFUSED",
  ]);
});

test("versions of Redis and Valkey are recognized", () => {
  const first = ALL_VERSIONS.map((version) => verdicts("version", facts(version))[0]);
  expect(first).toEqual([
    "critical: Redis 6.0.16",
    "info: Redis 6.2.14",
    "info: Redis 7.0.15",
    "ok: Redis 7.2.4",
    "ok: Redis 8.0.2",
    "ok: Valkey 8.1.1",
  ]);
});

test.each(["Redis 6.2", "Redis 7.2", "Valkey 8"] as const)(
  "a managed %s without CONFIG is judged by INFO, and what INFO does not show is unknown",
  (version) => {
    const findings = judge([managed(version, { anonymous: "admitted" })]);
    const status = (id: string): string | undefined => findings.find((one) => one.id === id)?.status;
    expect([status("eviction"), status("memory"), status("connections")]).toEqual(["ok", "ok", "ok"]);
    expect(status("persistence")).toBe("unknown");
    expect(findings.find(({ id }) => id === "exposure")).toMatchObject({
      severity: "critical",
      measured: "no password, reached over the network",
    });
    // INFO also shows whether a minimum is configured.
    const one = { info: { connected_slaves: "1" } };
    expect(verdicts("replicas", managed(version, one))).toEqual(["warning: 1 replica, min-replicas-to-write 0"]);
    const good = { info: { connected_slaves: "1", min_slaves_good_slaves: "1" } };
    expect(verdicts("replicas", managed(version, good))).toEqual([
      version === "Redis 6.2"
        ? "warning: 1 replica, min-replicas-to-write set, which does not stop scripts before Redis 7"
        : "ok: 1 replica, min-replicas-to-write set",
    ]);
    expect(
      verdicts("restart-wipe", managed(version, { info: { connected_slaves: "1", aof_enabled: "0" } }))[0],
    ).toMatch(/^unknown/);
  },
);

test("the printed command gives that user all permissions for the prefix, also in a cluster", () => {
  const lacking = { permissions: { missing: ["+evalsha"], forbidden: [], untried: new Map() } };
  const check = CHECKS.filter(({ id }) => id === "acl");
  const fixOf = (topology: "single" | "cluster", version: "Redis 6.2" | "Redis 7.0" = "Redis 7.0"): string =>
    judge([facts(version, { ...lacking, topology })], { prefix: "app", checks: check })[0]?.fix ?? "";
  expect(fixOf("single")).toMatch(
    /^ACL SETUSER locks ~app:\* &app:in:\* .*\+evalsha \+script\|load .*\+pubsub\|numsub$/,
  );
  expect(fixOf("cluster")).toMatch(/ \+ssubscribe .* \+cluster\|slots /);
  // This server rejects rules for commands that it does not have.
  expect(fixOf("cluster", "Redis 6.2")).not.toMatch(/ \+s(un)?subscribe| \+spublish/);
  expect(fixOf("cluster", "Redis 6.2")).toMatch(/ \+subscribe .* \+pubsub\|shardnumsub \+cluster\|myid .*\|setinfo /);
});

test.each([
  ["clock", "clock-skew", "grant TIME to this user"],
  ["clock", "clock-runs", "grant TIME to this user"],
  ["latency", "latency", "grant TIME to this user"],
  ["slow", "busy", "grant SLOWLOG GET to this user, or look at the service's own charts"],
  ["keys", "client-timeouts", "grant SCAN to this user"],
  ["keys", "protocols", "grant SCAN to this user"],
  ["keys", "shared", "grant SCAN to this user"],
  ["keys", "leftovers", "grant SCAN to this user"],
  ["cluster", "cluster", "grant CLUSTER INFO to this user"],
])(
  "if %s arrive too late, %s asks for more time, and for a permission only if the server refused",
  (fact, id, grant) => {
    const fixFor = (why: string): string[] => {
      const unread = { topology: "cluster", [fact]: undefined as never, hidden: new Map([[fact, why]]) } as const;
      const findings = judge([facts("Redis 7.2", unread)], { checks: CHECKS.filter((check) => check.id === id) });
      return findings.map(({ status, measured, fix }) => `${status}: ${measured.includes(why)}: ${fix}`);
    };
    expect(fixFor("no reply within 5s")).toEqual(["unknown: true: allow more time: run holdfast doctor --for 1m"]);
    expect(fixFor("Command timed out")).toEqual([
      "unknown: true: allow more time: run holdfast doctor --command-timeout 30s",
    ]);
    expect(fixFor("ERR unsupported command")).toEqual([`unknown: true: ${grant}`]);
    expect(fixFor("NOPERM this user has no permissions")).toEqual([`unknown: true: ${grant}`]);
  },
);

test("the fix for deadlocks that were not found in time is more time", () => {
  const checks = CHECKS.filter(({ id }) => id === "deadlocks");
  const fixFor = (error: string): string[] =>
    judge([facts("Redis 7.2")], { checks, deadlocks: { error } }).map(({ fix }) => fix);
  expect(fixFor("no reply within 5s")).toEqual(["allow more time: run holdfast doctor --for 1m"]);
  expect(fixFor("NOPERM no permissions")).toEqual(["grant SCAN and EVALSHA to this user"]);
});

test("the fix for a deadlock is the command that ends it, or one sentence if other servers have the lock", () => {
  const checks = CHECKS.filter(({ id }) => id === "deadlocks");
  const claim = { kind: "mutex", name: "orders", key: undefined, owner: "o", label: undefined, sinceAtMs: 1 } as const;
  const fixFor = (more: Partial<DeadlockMember["holds"]>): string[] => {
    const holds = { ...claim, token: 5, leaseLeftMs: 9, ...more };
    const who = { clientId: "c", host: "ci", pid: 7, clientName: undefined };
    const deadlock = { sinceAtMs: 1, members: [{ ...who, holds, waits: { ...claim, name: "stock" } }] };
    const deadlocks = { deadlocks: [deadlock], isComplete: true, unreachable: 0, atMs: 9 };
    return judge([facts("Redis 7.2")], { checks, deadlocks }).map(({ fix }) => fix);
  };
  expect(fixFor({})).toEqual(["holdfast release orders --token 5 -m WHY (loses the least work)"]);
  const server = { index: 1, address: "10.0.0.5:6379" };
  expect(fixFor({ needsTopology: "single-server", server })).toEqual([
    "to lose the least work, release orders, which is a lock on a single server (10.0.0.5:6379), not on all servers of --redlock. Use -r with that server alone",
  ]);
  expect(fixFor({ needsTopology: "single-server" })).toEqual([
    "to lose the least work, release orders, which is a lock on a single server, not on all servers of --redlock. Use -r with that server alone",
  ]);
});

test("the command that permits lists and the history contains only what is missing", () => {
  const fixFor = (...missing: readonly string[]): string[] => {
    const lacking = facts("Redis 7.2", { permissions: { missing, forbidden: [], untried: new Map() } });
    return judge([lacking], { checks: CHECKS.filter(({ id }) => id === "acl") }).map(({ fix }) => fix);
  };
  expect(fixFor("+eval")).toEqual(["nothing to do, unless another library needs EVAL"]);
  expect(fixFor("+xadd", "+eval")).toEqual([
    "nothing to do for locks; for lists and the history: ACL SETUSER locks +xadd",
  ]);
});

test("grace: a quiet server is reported with the remaining time", () => {
  const lineage = facts("Redis 7.2").lineage as NonNullable<NodeFacts["lineage"]>;
  const { nowMs, run } = lineage;
  const with_ = (change: object): string[] =>
    verdicts("grace", facts("Redis 7.2", { lineage: { ...lineage, ...change } }));
  const pending = { run: "other", pending: run, sinceMs: nowMs - 10_000, longestMs: 30_000 };
  expect(with_({ marker: pending })[0]).toMatch(/^warning: quiet for 20s more, until 2026-/);
  expect(with_({ marker: { ...pending, sinceMs: nowMs + 60_000 } })[0]).toMatch(/^warning: quiet for 30s more/);
  expect(with_({ marker: { ...pending, sinceMs: nowMs - 31_000 } })[0]).toMatch(/^ok/);
  expect(with_({ marker: { run: "other", sinceMs: 0, longestMs: 30_000 } })[0]).toMatch(
    /^warning: has been restarted \(.* ago\) since it last granted locks; no program has sent/,
  );
  const ofQuorum = (marker: object): string =>
    verdicts("grace", facts("Redis 7.2", { topology: "redlock", lineage: { ...lineage, marker } as never }))[0] ?? "";
  expect(ofQuorum({ pending: run, sinceMs: nowMs - 600_000, longestMs: 1_000 })).toBe(
    "warning: quiet for 50m more: it was restarted, and too few other servers have reported the longest lease",
  );
  expect(ofQuorum({ ...pending, heard: run })).toMatch(/^warning: quiet for 20s more, until 2026-/);
  expect(with_({ isPromoted: true, marker: { run, sinceMs: 0, longestMs: 30_000 } })[0]).toBe(
    "info: was promoted; its quiet time is over",
  );
  expect(with_({ isPromoted: true, marker: undefined })[0]).toMatch(/^info: was promoted, and no program/);
  expect(with_({ upMs: 12_000 })[0]).toBe("info: started 12s ago, less than the longest lease (30s)");
});

const CLUSTER = { topology: "cluster" as const, inbox: { isSharded: true, receivers: 1, arrivedMs: 1 } };
const WHOLE = new Map([
  ["cluster_state", "ok"],
  ["cluster_slots_assigned", "16384"],
  ["cluster_slots_fail", "0"],
]);

test("a cluster passes only if every slot has a server, no slot moves, and channels are sharded", () => {
  const of = (its: object, version: "Redis 6.2" | "Redis 7.2" = "Redis 7.2", rest: Otherwise = CLUSTER): string =>
    verdicts(
      "cluster",
      facts(version, { ...CLUSTER, ...rest, cluster: { info: WHOLE, moving: [], misplaced: [], ...its } }),
    )[0] ?? "";
  expect(of({})).toBe("ok: cluster_state ok, all slots served");
  expect(of({ info: new Map([...WHOLE, ["cluster_state", "fail"]]) })).toMatch(/^critical: cluster_state fail/);
  expect(of({ info: new Map([...WHOLE, ["cluster_slots_assigned", "16383"]]) })).toMatch(
    /^critical: .*1 slot without a server/,
  );
  expect(of({ moving: [93] })).toBe("warning: 1 slot being moved: 93");
  expect(of({ misplaced: ["hf:mutex:{doctor}:queue"] })).toMatch(/^critical: the server maps/);
  expect(of({}, "Redis 6.2")).toMatch(/^warning: .*without sharded channels/);
});

test("a quorum with one server under two names, or with a replica, is critical", () => {
  const server = (at: number, info: Otherwise["info"] = {}): NodeFacts =>
    facts("Redis 7.2", {
      topology: "redlock",
      node: `10.0.0.${at}:6379`,
      info: { run_id: `${at}`.repeat(40), master_replid: `${at}`.repeat(40), tcp_port: "6379", ...info },
    });
  expect(verdicts("redlock", [server(1), server(2), server(3)])).toEqual(Array(3).fill("ok: an independent server"));
  expect(verdicts("redlock", [server(1), server(2), server(3, { run_id: "1".repeat(40) })])[2]).toBe(
    "critical: the same server as 10.0.0.1:6379",
  );
  const replica = { role: "slave", master_host: "10.0.0.1", master_port: "6379", master_replid: "1".repeat(40) };
  expect(verdicts("redlock", [server(1), server(2, replica), server(3)])[1]).toBe(
    "critical: a replica of 10.0.0.1:6379",
  );
  expect(verdicts("redlock", [server(2, replica), server(1)])).toContain("critical: the primary of 10.0.0.2:6379");
  expect(verdicts("redlock", [server(1), server(2)])[0]).toBe("warning: 2 servers");
  expect(
    verdicts(
      "redlock",
      [1, 2, 3, 4].map((at) => server(at)),
    )[0],
  ).toBe("warning: 4 servers");
  expect(verdicts("redlock", [server(1), server(2), { ...server(3), info: new Map() }])[2]).toMatch(/^unknown/);
});

test("the clocks of nodes are compared with each other, each pair once", () => {
  const node = (at: number, offsetMs: number): NodeFacts =>
    facts("Redis 7.2", {
      node: `10.0.0.${at}:6379`,
      clock: { offsetMs, uncertaintyMs: 1, serverRanMs: 200, clientRanMs: 200 },
    });
  expect(verdicts("clock-skew", [node(1, 0), node(2, 150), node(3, 20)]).map((text) => text.split(" 10.0")[0])).toEqual(
    [
      "ok: 0.00 ms ahead of this machine's clock",
      "warning: 150 ms ahead of the clock of",
      "warning: 130 ms behind the clock of",
    ],
  );
  expect(verdicts("clock-skew", [node(1, 0), node(2, 2_500)])).toContain(
    "critical: 2.5 s ahead of the clock of 10.0.0.1:6379",
  );
});

test("a slow script is a warning if it was recent and slow for this lease", () => {
  const entry = (tookMs: number, agoMs: number): Otherwise => ({
    slow: { entries: [{ atMs: Date.now() - agoMs, tookMs, command: "evalsha", isScript: true }], spikes: [] },
  });
  expect(verdicts("busy", facts("Redis 7.0", entry(3_100, 60_000)))[0]).toMatch(
    /^warning: evalsha 3.1 s at .*BUSY after 5000 ms/,
  );
  expect(verdicts("busy", facts("Redis 7.0", entry(3_100, 60_000)), 60_000)[0]).toMatch(/^ok/);
  expect(verdicts("busy", facts("Redis 7.0", entry(3_100, 2 * 86_400_000)))[0]).toMatch(/^ok/);
  const spikes = [{ event: "fork", atMs: Date.now(), worstMs: 4_000 }];
  expect(verdicts("busy", facts("Redis 7.0", { slow: { entries: [], spikes } }))[0]).toMatch(/^warning: fork 4.0 s/);
});

test("clients that would keep a dead connection are grouped by the fix that they need", () => {
  const keys = facts("Redis 7.2").keys as NonNullable<NodeFacts["keys"]>;
  const of = (change: object): readonly Finding[] =>
    judge([facts("Redis 7.2", { keys: { ...keys, ...change } })], { checks: [clientTimeouts] });
  const bare = { client: "cart, pid 7 on shop-1", library: "ioredis", keepAliveMs: 30_000, cure: "set socketTimeout" };
  const other = { client: "pid 8 on shop-2", library: "node-redis", socketTimeoutMs: 5_000, cure: "set a strategy" };
  const well = { client: "pid 9 on shop-3", library: "glide" };
  const four = ["a", "b", "c", "d"];
  expect(of({ clients: four, timeouts: [bare, other, well, { ...bare, client: "pid 6 on shop-1" }] })).toMatchObject([
    {
      severity: "warning",
      measured:
        "2 clients would keep a dead connection: cart, pid 7 on shop-1 (ioredis, no socket timeout, keepalive 30000 ms), " +
        "pid 6 on shop-1 (ioredis, no socket timeout, keepalive 30000 ms)",
      fix: "set socketTimeout (docs/half-open-connections.md)",
    },
    {
      severity: "warning",
      measured: "a client would keep a dead connection: pid 8 on shop-2 (node-redis, socket timeout 5000 ms)",
      fix: "set a strategy (docs/half-open-connections.md)",
    },
  ]);
  expect(of({ clients: four, timeouts: [well] })).toMatchObject([
    { status: "ok", measured: "1 client that replaces a dead connection, 3 clients for which this is unknown" },
  ]);
  expect(verdicts("client-timeouts", facts("Redis 7.2", { role: "slave" }))[0]).toMatch(/^skipped/);
  const hidden = new Map([["keys", "NOPERM"]]);
  expect(verdicts("client-timeouts", facts("Redis 7.2", { keys: undefined as never, hidden }))[0]).toMatch(
    /^unknown: keys could not be listed \(NOPERM\)/,
  );
});

test("clients with protocols that cannot work together are named, each once, from all nodes", () => {
  const keys = facts("Redis 7.2").keys as NonNullable<NodeFacts["keys"]>;
  const client = (id: string, protocol: number): ProtocolFacts => ({
    ...{ id, client: `${id}, pid 7 on shop-1` },
    ...{ protocol, version: protocol === 0 ? "" : `${protocol}.2.0` },
  });
  const node = (name: string, ids: readonly string[], protocols: readonly ProtocolFacts[]): NodeFacts =>
    facts("Redis 7.2", { node: name, keys: { ...keys, clients: ids, protocols } });
  const of = (...nodes: readonly NodeFacts[]): readonly Finding[] =>
    judge(nodes, { checks: CHECKS.filter(({ id }) => id === "protocols") });
  const [old, one, two] = [client("old", 0), client("one", 1), client("two", 2)];
  expect(of(node("a:1", ["one"], [one]), node("b:2", ["one", "two"], [two, one]))).toMatchObject([
    {
      node: "all",
      severity: "warning",
      measured:
        "clients of 2 incompatible protocols: protocol 1: one, pid 7 on shop-1 (version 1.2.0); " +
        "protocol 2: two, pid 7 on shop-1 (version 2.2.0)",
      risk: expect.stringContaining("ProtocolError"),
      fix: expect.stringContaining("docs/upgrading.md"),
    },
  ]);
  // Protocol 0 has no marker, so nothing keeps it from granting the locks of protocol 2 again.
  expect(of(node("a:1", ["old", "two"], [old, two]))).toMatchObject([
    {
      severity: "critical",
      measured: expect.stringContaining("protocol 0: old, pid 7 on shop-1; protocol 2: two"),
      risk: expect.stringContaining("two clients may hold the same lock"),
    },
  ]);
  expect(of(node("a:1", ["old", "one", "other"], [old, one]))).toMatchObject([
    {
      status: "ok",
      measured: "2 clients with protocols 0 and 1, which work together, 1 client for which this is unknown",
    },
  ]);
  expect(of(node("a:1", ["one"], [one]))).toMatchObject([{ status: "ok", measured: "1 client with protocol 1" }]);
  expect(of(node("a:1", [], []))).toMatchObject([{ status: "ok", measured: "no clients" }]);
  expect(of(node("a:1", ["one"], []))).toMatchObject([
    { status: "ok", measured: "1 client for which this is unknown" },
  ]);
  const cut = facts("Redis 7.2", { keys: { ...keys, clients: ["one"], protocols: [one], isComplete: false } });
  expect(of(cut)).toMatchObject([
    { status: "unknown", measured: "1 client with protocol 1 among the keys that were read", fix: MORE_TIME },
  ]);
  expect(verdicts("protocols", facts("Redis 7.2", { role: "slave" }))[0]).toMatch(/^skipped/);
  const hidden = new Map([["keys", "NOPERM"]]);
  expect(verdicts("protocols", facts("Redis 7.2", { keys: undefined as never, hidden }))[0]).toMatch(
    /^unknown: keys could not be listed \(NOPERM\)/,
  );
});

test("checks that need the records of clients are unknown if the user may not read them", () => {
  const keys = { ...(facts("Redis 7.2").keys as NonNullable<NodeFacts["keys"]>), clients: ["one", "two"] };
  const hidden = facts("Redis 7.2", { keys: { ...keys, timeouts: [], areRecordsHidden: true } });
  const checks = CHECKS.filter(({ id }) => id === "protocols" || id === "client-timeouts");
  const found = judge([hidden], { checks });
  expect(found.map(({ id, status, fix }) => [id, status, fix])).toEqual([
    ["client-timeouts", "unknown", "grant HMGET to this user"],
    ["protocols", "unknown", "grant HMGET to this user"],
  ]);
});

test("leftovers are reported by type; a waiter counts as gone only if no node has its client record", () => {
  const keys = facts("Redis 7.2").keys as NonNullable<NodeFacts["keys"]>;
  const of = (change: object, rest: readonly NodeFacts[] = []): string[] =>
    verdicts("leftovers", [facts("Redis 7.2", { keys: { ...keys, ...change } }), ...rest]);
  expect(of({ withoutExpiry: ["hf:mutex:{a}"] })[0]).toBe("warning: 1 key without an expiry: hf:mutex:{a}");
  expect(of({ strange: ["hf:queue:1"] })[0]).toBe("warning: 1 key of unknown kind or form: hf:queue:1");
  const waiting = ["hf:mutex:{a}:queue: ReH8GUZ6AOmR69do/7/30000/1"];
  expect(of({ waiting })[0]).toMatch(/^warning: 1 queued waiter whose client is gone: /);
  expect(of({ waiting: [...waiting, ...waiting] })[0]).toMatch(/^warning: 2 queued waiters whose clients are gone: /);
  expect(of({ waiting, clients: ["ReH8GUZ6AOmR69do"] })[0]).toMatch(/^ok/);
  const elsewhere = facts("Redis 7.2", { node: "10.0.0.6:6379", keys: { ...keys, clients: ["ReH8GUZ6AOmR69do"] } });
  expect(of({ waiting }, [elsewhere])[0]).toMatch(/^ok/);
  expect(of({ isComplete: false, total: 4_000_000 })[0]).toMatch(
    /^unknown: nothing left over under the prefix hf; examined 10 of 4000000 keys$/,
  );
  expect(
    verdicts("shared", facts("Redis 7.2", { keys: { ...keys, others: [["cache:*", 7]] }, flushers: ["default"] })),
  ).toEqual(["info: other keys: cache:* (7); users who can empty it: default"]);
});

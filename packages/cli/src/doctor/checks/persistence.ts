/** Checks what a restart loses, and what a failed write to disk blocks. */
import { type Check, found, ok, skipped, unknown } from "../check.js";
import { type NodeFacts, numberIn } from "../facts.js";
import { counted } from "../words.js";

const PERMIT = "grant CONFIG GET to this user, or look it up where the service is configured";

/** Whether the server writes an append-only file; undefined if the server does not say. */
function hasAppendOnlyFile({ info, config }: NodeFacts): boolean | undefined {
  const enabled = info.get("aof_enabled");
  if (enabled !== undefined) return enabled === "1";
  const appendonly = config.get("appendonly");
  return appendonly === undefined ? undefined : appendonly === "yes";
}

/** The kinds of disk writes whose most recent attempt failed. */
function failures({ info, config }: NodeFacts): string[] {
  const fields = ["aof_last_write_status", "aof_last_bgrewrite_status"];
  // Without save points, a snapshot exists only if it was requested manually, so its status says nothing about
  // persistence.
  if (config.get("save") !== "") fields.push("rdb_last_bgsave_status");
  return fields.filter((field) => (info.get(field) ?? "ok") !== "ok");
}

/** Checks which data a restart loses. */
export const persistence: Check = {
  id: "persistence",
  reads: "`aof_enabled`, `appendfsync`, `save`, and whether the last write succeeded",
  levels:
    "critical if the last write failed; warning without an append-only file and `appendfsync always`; info with both",
  risk: 'A restart loses all leases or, with `everysec`, those granted in the last two seconds. Two clients may then hold the same lock, unless failoverGrace is "strict".',
  fix: 'set appendonly yes and appendfsync always, or use failoverGrace: "strict" in all programs',
  families: [],
  run(facts) {
    const failed = failures(facts);
    if (failed.length > 0) {
      return found("critical", failed.map((field) => `${field} is ${facts.info.get(field)}`).join(", "), {
        risk: "The next restart loses whatever was not written. While writing to disk fails, the server may refuse requests that write.",
        fix: "look in the server's log (disk full, directory missing, no memory to fork?), fix the cause, and run BGSAVE or BGREWRITEAOF",
      });
    }
    const hasFile = hasAppendOnlyFile(facts);
    if (hasFile === undefined) return unknown("the server shows neither INFO persistence nor CONFIG", PERMIT);
    if (!hasFile) {
      const save = facts.config.get("save");
      if (save === undefined) return found("warning", "no append-only file");
      return found("warning", save === "" ? "nothing is written to disk" : `snapshots only (save ${save})`);
    }
    const fsync = facts.config.get("appendfsync");
    if (fsync === undefined) return unknown("an append-only file; the server does not show appendfsync", PERMIT);
    const measured = `append-only file, appendfsync ${fsync}`;
    if (fsync !== "always") return found("warning", measured);
    return found("info", measured, {
      risk: "A restart loses nothing that was acknowledged. Each acquire waits for the disk.",
      fix: "nothing to do",
    });
  },
};

/** Reports a primary that may restart empty and then empty its replicas. */
export const restartWipe: Check = {
  id: "restart-wipe",
  reads: "whether the server has replicas but no persistence",
  levels: "critical",
  risk: "After a restart, the primary and then its replicas are empty, so all locks are free.",
  fix: "turn on persistence, or make sure that the primary cannot restart before a replica is promoted",
  families: [],
  run(facts) {
    if (facts.role === "slave") return skipped("a replica");
    const replicas = numberIn(facts.info, "connected_slaves");
    const hasFile = hasAppendOnlyFile(facts);
    if (replicas === 0) return ok("no replicas");
    if (hasFile === true) return ok("an append-only file");
    if (replicas === undefined) return unknown("the server does not show INFO replication", "grant INFO to this user");
    const save = facts.config.get("save");
    const replicaCount = counted(replicas, "replica");
    if (save === undefined)
      return unknown(`no append-only file, ${replicaCount}; the server does not show save`, PERMIT);
    return save === ""
      ? found("critical", `nothing is written to disk, ${replicaCount}`)
      : ok(`snapshots (save ${save})`);
  },
};

/** Reports a server that could not save and therefore refuses every write. */
export const stopWrites: Check = {
  id: "stop-writes",
  reads: "`stop-writes-on-bgsave-error`, and whether the last snapshot succeeded",
  levels: "critical if the last snapshot failed",
  risk: "Redis refuses every write (MISCONF): no lock is granted, and no lease is renewed.",
  fix: "free disk space or repair the snapshot directory, then run BGSAVE",
  families: [],
  run({ info, config }) {
    const status = info.get("rdb_last_bgsave_status");
    if (status === undefined) return unknown("the server does not show INFO persistence", "grant INFO to this user");
    if (status === "ok") return ok("the last snapshot was written");
    const stops = config.get("stop-writes-on-bgsave-error");
    const measured = `the last snapshot failed (${status}), stop-writes-on-bgsave-error ${stops ?? "not shown, yes by default"}`;
    if (stops === "no") return ok(measured);
    // Redis refuses writes only if automatic snapshots are configured.
    return config.get("save") === "" ? ok(`${measured}, but automatic snapshots are off`) : found("critical", measured);
  },
};

/** The definitions of all metrics. Every metrics library uses the same ones. */

/** Bucket boundaries in seconds, from a fast reply to a minute. */
const UP_TO_A_MINUTE: readonly number[] = [
  0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60,
];
/** Bucket boundaries in seconds for holds, which last as long as the work under the lock. */
const UP_TO_AN_HOUR: readonly number[] = [...UP_TO_A_MINUTE, 300, 900, 3600];

/** A metric. All except `COMMAND` have the labels `group`, `kind`, `mode` (read-write locks), and at most one more. */
export interface Definition {
  /** The name of the metric in OpenTelemetry. Other libraries derive theirs from it. */
  readonly name: string;
  readonly help: string;
  /** `s` for seconds, `1` for a flag, or the item that is counted, in braces, for example `{lease}`. */
  readonly unit: string;
  readonly label?: "outcome" | "reason" | undefined;
}

/** A distribution, in seconds. */
export interface HistogramDefinition extends Definition {
  readonly buckets: readonly number[];
}

/** A counter, which only rises. */
export interface CounterDefinition extends Definition {
  /**
   * Label values that are reported as zero as soon as a lock of that group and kind appears, because zero differs from
   * missing data.
   */
  readonly zeros: readonly string[];
  /** Label values that appear only after they have occurred. The documentation lists them after `zeros`. */
  readonly others?: readonly string[];
}

/** The histograms of locks. */
export const HISTOGRAMS: Readonly<Record<"acquire" | "wait" | "hold", HistogramDefinition>> = {
  acquire: {
    name: "holdfast.lock.acquire.duration",
    help: "Duration of acquires, whatever their outcome.",
    unit: "s",
    label: "outcome",
    buckets: UP_TO_A_MINUTE,
  },
  wait: {
    name: "holdfast.lock.wait.duration",
    help: "Duration of the acquires that had to wait.",
    unit: "s",
    label: "outcome",
    buckets: UP_TO_A_MINUTE,
  },
  hold: {
    name: "holdfast.lock.hold.duration",
    help: "Time from the grant to the end of the lease.",
    unit: "s",
    label: "outcome",
    buckets: UP_TO_AN_HOUR,
  },
};

/** The counters. */
export const COUNTERS: Readonly<
  Record<
    | "acquisitions"
    | "renewals"
    | "lost"
    | "releases"
    | "leaderTransitions"
    | "once"
    | "runsEnded"
    | "runsSkipped"
    | "requests"
    | "cacheGets",
    CounterDefinition
  >
> = {
  acquisitions: {
    name: "holdfast.lock.acquisitions",
    help: "Acquires that ended. passed: a latch or barrier let the caller continue.",
    unit: "{acquisition}",
    label: "outcome",
    zeros: ["granted", "refused", "timeout", "aborted", "paused", "unknown"],
    others: ["closed", "passed"],
  },
  renewals: {
    name: "holdfast.lock.renewals",
    help: "Renewals. retried: not confirmed, so sent again; failed: the lease ended first.",
    unit: "{renewal}",
    label: "outcome",
    zeros: ["renewed", "retried", "failed"],
  },
  lost: {
    name: "holdfast.lock.lost",
    help: "Leases that ended before their release.",
    unit: "{lease}",
    label: "reason",
    zeros: ["expired", "force-released", "server-lost", "max-hold"],
  },
  releases: {
    name: "holdfast.lock.releases",
    help: "Releases, by the server's reply.",
    unit: "{release}",
    label: "outcome",
    zeros: ["released", "expired-unclaimed", "lost", "unknown"],
    others: ["handed-over"],
  },
  leaderTransitions: {
    name: "holdfast.leader.transitions",
    help: "The number of times this process became the leader.",
    unit: "{transition}",
    zeros: [],
  },
  once: {
    name: "holdfast.once.calls",
    help: "Calls to once that ended in this process.",
    unit: "{call}",
    label: "outcome",
    zeros: ["executed", "replayed", "joined", "in_flight", "mismatch", "blocked", "failed"],
  },
  runsEnded: {
    name: "holdfast.run.ended",
    help: "Scheduled runs that ended in this process. unreported: node-cron does not say how its run ended.",
    unit: "{run}",
    label: "outcome",
    zeros: ["succeeded", "failed", "lost"],
    others: ["unreported"],
  },
  runsSkipped: {
    name: "holdfast.run.skipped",
    help: "Scheduled runs that did not start in this process.",
    unit: "{run}",
    label: "reason",
    zeros: ["already-done", "held", "paused", "grace", "unavailable"],
  },
  requests: {
    name: "holdfast.idempotency.requests",
    help: "Answered requests with an Idempotency-Key. The kind is http, and the group is the method and route.",
    unit: "{request}",
    label: "outcome",
    zeros: ["carried-out", "released", "unstored", "replayed", "running", "mismatch", "unavailable"],
    others: ["ignored", "missing", "malformed", "too-large", "blocked", "result-unavailable"],
  },
  cacheGets: {
    name: "holdfast.cache.gets",
    help: "Calls to get on a cache. The group comes from the name of the cache.",
    unit: "{call}",
    label: "outcome",
    zeros: ["fresh", "stale", "loaded", "alone", "joined", "failed", "aborted"],
  },
};

/** How long script calls take. This metric has no group because one script serves all locks of its kind. */
export const COMMAND: HistogramDefinition = {
  name: "holdfast.store.command.duration",
  help: "Time from a script call to its reply, or until Holdfast stops waiting for one.",
  unit: "s",
  buckets: UP_TO_A_MINUTE,
};

/** The gauges. They are read whenever the metrics are collected. */
export const GAUGES: Readonly<
  Record<"held" | "waiting" | "oldest" | "leaderActive" | "permitsUsed" | "permitsLimit", Definition>
> = {
  held: { name: "holdfast.lock.held", help: "Leases that this process holds now.", unit: "{lease}" },
  waiting: { name: "holdfast.lock.waiting", help: "Callers in this process that are waiting now.", unit: "{waiter}" },
  oldest: {
    name: "holdfast.lock.held.oldest",
    help: "How long the oldest lease of this process has been held.",
    unit: "s",
  },
  permitsUsed: {
    name: "holdfast.semaphore.permits.used",
    help: "Permits that this process holds now.",
    unit: "{permit}",
  },
  permitsLimit: {
    name: "holdfast.semaphore.permits.limit",
    help: "Permits declared in this process for the group's semaphore, or for the largest of several.",
    unit: "{permit}",
  },
  leaderActive: { name: "holdfast.leader.active", help: "1 while this process leads.", unit: "1" },
};

/** The key of a histogram in `HISTOGRAMS`. */
export type HistogramName = keyof typeof HISTOGRAMS;
/** The key of a counter in `COUNTERS`. */
export type CounterName = keyof typeof COUNTERS;
/** The key of a gauge in `GAUGES`. */
export type GaugeName = keyof typeof GAUGES;

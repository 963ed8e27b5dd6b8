/**
 * Defines a check and its result.
 *
 * The facts of each node are read once (read/). Checks are functions of facts and send no requests (checks/). To add a
 * check, put it in the file of its family and in table.ts, name the facts that it needs, and write its documentation
 * section as table.ts describes.
 */
import type { FoundDeadlocks } from "holdfast/admin";
import type { FactFamily, NodeFacts } from "./facts.js";

/** How serious a finding is. */
export type Severity = "critical" | "warning" | "info";

/**
 * `unknown`: the server does not show the facts that the check needs; this never counts as `ok`. `skipped`: the check
 * does not apply here.
 */
export type Status = "ok" | "finding" | "unknown" | "skipped";

/** The result of one check for one node. */
export interface Finding {
  /** The id of the check, such as `eviction`. */
  readonly id: string;
  /** `host:port`, or `all` if the result is about all nodes together. */
  readonly node: string;
  /** `info` unless `status` is `finding`. */
  readonly severity: Severity;
  readonly status: Status;
  /** The measured values, as text. */
  readonly measured: string;
  /** What may go wrong; empty without a finding. */
  readonly risk: string;
  /** How to fix the problem, or how to make an `unknown` result known; empty if there is nothing to do. */
  readonly fix: string;
}

/** What a check concludes from the facts. Risk and fix default to those of the check. */
export interface Verdict {
  readonly status: Status;
  /** Only for findings. */
  readonly severity?: Severity;
  readonly measured: string;
  readonly risk?: string;
  readonly fix?: string;
  /** Replaces the name of the node. */
  readonly node?: string;
}

/** What all checks of one examination receive in addition to the facts of a node. */
export interface Examination {
  /** The lease, in ms, for which replies must be fast enough. */
  readonly leaseMs: number;
  readonly prefix: string;
  /** The facts of all nodes, in the order of the targets. */
  readonly nodes: readonly NodeFacts[];
  /** Clients that wait for each other, or why that could not be read; undefined if it was not read. */
  readonly deadlocks?: SeenDeadlocks | undefined;
}

/** The data about locks that the `deadlocks` check uses. */
export type SeenDeadlocks =
  | (FoundDeadlocks & {
      /** Server time of the reading, in ms since 1970. */
      readonly atMs: number;
    })
  | { readonly error: string };

/** One check. The documentation pages that table.ts names show its texts. */
export interface Check {
  readonly id: string;
  /** What it checks, in a few words. */
  readonly reads: string;
  /** Which severity applies when, in a few words. */
  readonly levels: string;
  /** What may go wrong. */
  readonly risk: string;
  /** What to do. */
  readonly fix: string;
  /** The facts that the check needs in addition to those that are always read. */
  readonly families: readonly FactFamily[];
  /** Must not send requests and must not throw. May return several verdicts for one node, or none. */
  run(facts: NodeFacts, examination: Examination): readonly Verdict[];
}

/** A verdict without a problem. */
export function ok(measured: string): Verdict[] {
  return [{ status: "ok", measured }];
}

/** A verdict for a check that does not apply to this node. */
export function skipped(measured: string): Verdict[] {
  return [{ status: "skipped", measured }];
}

/** A verdict for a check whose facts could not be read. */
export function unknown(measured: string, fix: string): Verdict[] {
  return [{ status: "unknown", measured, fix }];
}

/** A verdict that reports a problem. */
export function found(
  severity: Severity,
  measured: string,
  texts: { readonly risk?: string; readonly fix?: string } = {},
): Verdict[] {
  return [{ status: "finding", severity, measured, ...texts }];
}

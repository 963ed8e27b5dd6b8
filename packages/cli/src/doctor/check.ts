/**
 * What a check is, and what it finds.
 *
 * Facts are read once for each node (read/). Checks are functions of facts and send no requests (checks/). To add one, put it in the file
 * of its family and in table.ts, name the facts that it needs, and write its section of the docs as table.ts says.
 */
import type { FoundDeadlocks } from "holdfast/admin";
import type { FactFamily, NodeFacts } from "./facts.js";

/** How bad it is. */
export type Severity = "critical" | "warning" | "info";

/** `unknown`: the server does not show what it takes to tell, which is never taken for well. `skipped`: it does not apply here. */
export type Status = "ok" | "finding" | "unknown" | "skipped";

/** What one check says of one node. */
export interface Finding {
  /** Which check, such as `eviction`. */
  readonly id: string;
  /** `host:port`, or `all` if it is about the nodes together. */
  readonly node: string;
  /** `info` unless it is a finding. */
  readonly severity: Severity;
  readonly status: Status;
  /** What was read. */
  readonly measured: string;
  /** What may go wrong; empty where nothing was found. */
  readonly risk: string;
  /** What to do about it, or in order to know; empty where there is nothing to do. */
  readonly fix: string;
}

/** What a check makes of the facts. Risk and fix are those of the check, unless it says otherwise. */
export interface Verdict {
  readonly status: Status;
  /** Of findings only. */
  readonly severity?: Severity;
  readonly measured: string;
  readonly risk?: string;
  readonly fix?: string;
  /** In place of the node's own name. */
  readonly node?: string;
}

/** What all checks of one examination are told besides the facts of a node. */
export interface Examination {
  /** The lease that answers must be quick for, in ms. */
  readonly leaseMs: number;
  readonly prefix: string;
  /** Facts of all nodes, in the order of the targets. */
  readonly nodes: readonly NodeFacts[];
  /** Clients that wait for each other, or why that could not be read; undefined if nobody looked. */
  readonly deadlocks?: SeenDeadlocks | undefined;
}

/** What was read of the locks for `deadlocks`. */
export type SeenDeadlocks =
  | (FoundDeadlocks & {
      /** By the server's clock. */
      readonly atMs: number;
    })
  | { readonly error: string };

/** One check. Its texts say what it is for; the pages of the docs that table.ts names show them. */
export interface Check {
  readonly id: string;
  /** What it checks, in a few words. */
  readonly reads: string;
  /** When it is how bad, in a few words. */
  readonly levels: string;
  /** What may go wrong. */
  readonly risk: string;
  /** What to do. */
  readonly fix: string;
  /** Facts that it needs besides those that are always read. */
  readonly families: readonly FactFamily[];
  /** Nothing is asked here, and nothing is thrown. One node may get several verdicts, or none. */
  run(facts: NodeFacts, examination: Examination): readonly Verdict[];
}

/** All is well. */
export function ok(measured: string): Verdict[] {
  return [{ status: "ok", measured }];
}

/** It does not apply to this node. */
export function skipped(measured: string): Verdict[] {
  return [{ status: "skipped", measured }];
}

/** It cannot be told. */
export function unknown(measured: string, fix: string): Verdict[] {
  return [{ status: "unknown", measured, fix }];
}

/** Something is amiss. */
export function found(
  severity: Severity,
  measured: string,
  texts: { readonly risk?: string; readonly fix?: string } = {},
): Verdict[] {
  return [{ status: "finding", severity, measured, ...texts }];
}

/** The audit log: one line per action with the visitor, the reason and the outcome. */
import { stderr } from "node:process";
import type { ActionName } from "./api.js";

/** An attempted action. */
export interface AuditLine {
  /** Redis server time, in ms since 1970. */
  readonly atMs: number;
  readonly action: ActionName;
  /** The kind of the lock; `client` if `name` is the id of a client; or `once` if it names a call of `once`. */
  readonly kind: string;
  readonly name: string;
  readonly token: number | null;
  /** The name from sign-in, or from the application's `authorize`. */
  readonly who: string;
  /** The address of the socket, which is the proxy's if there is one. */
  readonly address: string;
  readonly reason: string;
  /**
   * `refused`: nothing was done, for example because the page was out of date. `unknown`: no reply came, so it may have
   * been done.
   */
  readonly outcome: "done" | "refused" | "forbidden" | "unknown" | "failed";
  readonly detail: string;
}

/** Receives the audit lines. If it throws, the line goes to stderr instead, and the request continues. */
export type Audit = (line: AuditLine) => void;

/** Writes one line of JSON to stderr. JSON escapes line breaks in names. */
export function auditToStderr(line: AuditLine): void {
  stderr.write(`${JSON.stringify({ audit: line })}\n`);
}

/** Wraps an audit function. If it throws, the line goes to stderr instead. */
export function guarded(audit: Audit): Audit {
  return (line) => {
    try {
      audit(line);
    } catch {
      auditToStderr(line);
    }
  };
}

/** Who did what, why, and what became of it: one line for each action. */
import { stderr } from "node:process";
import type { ActionName } from "./api.js";

/** One action that was tried. */
export interface AuditLine {
  /** By the Redis server's clock, in ms since 1970. */
  readonly atMs: number;
  readonly action: ActionName;
  /** The kind of the lock; or `client`, and `name` is then its id. */
  readonly kind: string;
  readonly name: string;
  readonly token: number | null;
  /** As signed in, or as the application says. */
  readonly who: string;
  /** Of the socket: of the proxy, if there is one. */
  readonly address: string;
  readonly reason: string;
  /** `refused`: nothing was done, as the page was out of date. `unknown`: no answer came, and it may have been done. */
  readonly outcome: "done" | "refused" | "forbidden" | "unknown" | "failed";
  readonly detail: string;
}

/** Takes the lines. What it throws is ignored: the action has happened. */
export type Audit = (line: AuditLine) => void;

/** One line of JSON on stderr, which no name can break out of. */
export function auditToStderr(line: AuditLine): void {
  stderr.write(`${JSON.stringify({ audit: line })}\n`);
}

/** The same, and nothing it throws gets out. */
export function guarded(audit: Audit): Audit {
  return (line) => {
    try {
      audit(line);
    } catch {
      auditToStderr(line);
    }
  };
}

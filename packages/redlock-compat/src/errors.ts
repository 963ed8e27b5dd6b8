/**
 * The errors of redlock 5. Programs compare their classes, names and messages, so all three are those of the original.
 */
import type { ExecutionStats } from "./votes.js";

/**
 * A server did not apply an operation to all resources: at least one of them is locked with another value, or not
 * locked.
 */
export class ResourceLockedError extends Error {
  override readonly message: string;

  constructor(message: string) {
    super(message);
    this.message = message;
    this.name = "ResourceLockedError";
  }
}

/** An operation got no majority of the servers. `attempts` shows how each server voted in each attempt. */
export class ExecutionError extends Error {
  override readonly message: string;
  readonly attempts: ReadonlyArray<Promise<ExecutionStats>>;

  constructor(message: string, attempts: ReadonlyArray<Promise<ExecutionStats>>) {
    super(message);
    this.message = message;
    this.attempts = attempts;
    this.name = "ExecutionError";
  }
}

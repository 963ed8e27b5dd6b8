/** Errors for writes that a fenced resource refuses. */
import { LockError } from "holdfast";
import { quote } from "holdfast/internal";

/**
 * A later holder of the lock has already used the resource, so this write came too late. Nothing was written. The lease
 * has ended, even if its holder was not notified. Stop; to continue, acquire the lock again and read the resource
 * again.
 *
 * If there is no later holder, tokens went backward: the server of the lock lost its data, and its clock was set back.
 */
export class StaleTokenError extends LockError {
  override readonly name: string = "StaleTokenError";

  readonly code = "ERR_LOCK_STALE_TOKEN";
  /** The resource of the refused write. */
  readonly resource: string;
  /** Token of the refused lease. */
  readonly token: number;
  /** Highest token that the resource has seen. */
  readonly seen: number;

  constructor(lockName: string, facts: { readonly resource: string; readonly token: number; readonly seen: number }) {
    const { resource, token, seen } = facts;
    super(
      lockName,
      `A write to ${quote(resource)} was refused: it has already seen token ${seen} of ${quote(lockName)}, and this lease has token ${token}. The lock was granted to a later holder; stop writing.`,
    );
    this.resource = resource;
    this.token = token;
    this.seen = seen;
  }
}

/**
 * The resource belongs to another lock, and tokens of different locks cannot be compared. Nothing was written, and
 * retrying does not help: all writers of a resource must hold the same lock.
 */
export class ForeignLockError extends LockError {
  override readonly name: string = "ForeignLockError";

  readonly code = "ERR_LOCK_FOREIGN_LOCK";
  /** The resource of the refused write. */
  readonly resource: string;
  /** Token of the refused lease. */
  readonly token: number;
  /** Name of the lock that the resource belongs to. */
  readonly belongsTo: string;

  constructor(
    lockName: string,
    facts: { readonly resource: string; readonly token: number; readonly belongsTo: string },
  ) {
    const { resource, token, belongsTo } = facts;
    super(
      lockName,
      `${quote(resource)} was not written: it belongs to the lock ${quote(belongsTo)}, whose tokens cannot be compared with those of ${quote(lockName)}; hold the same lock for every write.`,
    );
    this.resource = resource;
    this.token = token;
    this.belongsTo = belongsTo;
  }
}

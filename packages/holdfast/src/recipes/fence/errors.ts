/** Why what a lock protects has turned away a write. */
import { LockError } from "../../index.js";
import { quote } from "../../internal.js";

/**
 * Somebody who was granted the lock later has been at the resource before, so this write came too late. Nothing was written: the
 * lease is over, whatever its holder has heard of it. Stop; to go on, acquire the lock anew and look at the resource again.
 *
 * If no later holder exists, tokens went back: the server of the lock has lost its data, and its clock was set back.
 */
export class StaleTokenError extends LockError {
  override readonly name: string = "StaleTokenError";

  readonly code = "ERR_LOCK_STALE_TOKEN";
  /** What was to be written. */
  readonly resource: string;
  /** Of the lease that came too late. */
  readonly token: number;
  /** The highest that the resource has seen. */
  readonly seen: number;

  constructor(lockName: string, facts: { readonly resource: string; readonly token: number; readonly seen: number }) {
    const { resource, token, seen } = facts;
    super(
      lockName,
      `${quote(resource)} was not written: it has seen token ${seen} of ${quote(lockName)}, and this lease has ${token}, so somebody was granted since; stop.`,
    );
    this.resource = resource;
    this.token = token;
    this.seen = seen;
  }
}

/**
 * The resource belongs to another lock, whose tokens cannot be compared with those of this one. Nothing was written, and trying
 * again does not help: all who write a resource must hold the same lock.
 */
export class ForeignLockError extends LockError {
  override readonly name: string = "ForeignLockError";

  readonly code = "ERR_LOCK_FOREIGN_LOCK";
  /** What was to be written. */
  readonly resource: string;
  /** Of the lease that was refused. */
  readonly token: number;
  /** Name of the lock that it belongs to. */
  readonly belongsTo: string;

  constructor(
    lockName: string,
    facts: { readonly resource: string; readonly token: number; readonly belongsTo: string },
  ) {
    const { resource, token, belongsTo } = facts;
    super(
      lockName,
      `${quote(resource)} was not written: it belongs to the lock ${quote(belongsTo)}, and the tokens of ${quote(lockName)} cannot be compared with its; hold the same lock for every write to it.`,
    );
    this.resource = resource;
    this.token = token;
    this.belongsTo = belongsTo;
  }
}

import { LockError } from "holdfast";
import { quote } from "holdfast/internal";

/**
 * The key does not contain a lock of this dialect: the key has a different type, or its value is not a number or uses a
 * different unit. Nothing was written and nothing is held. Waiting does not help, because another client is configured
 * differently or uses the key for something else.
 */
export class ForeignValueError extends LockError {
  /** The name of the class. */
  override readonly name: string = "ForeignValueError";

  /** Identifies the error independent of its class. */
  readonly code = "ERR_LOCK_FOREIGN_VALUE";
  /** Key of the lock on the server. */
  readonly key: string;
  /** The first 80 characters of the value, or a description of the key if it has a different type. */
  readonly found: string;

  /** Creates the error. @param lockName  name of the lock @param facts  the values of the properties */
  constructor(lockName: string, facts: { readonly key: string; readonly found: string; readonly expected: string }) {
    const { key, found, expected } = facts;
    super(
      lockName,
      `The key ${quote(key)} of ${quote(lockName)} does not contain a lock of this dialect: expected ${expected}, found ${quote(found)}. Nothing was written. Check the dialect, and what else uses this key.`,
    );
    this.key = key;
    this.found = found;
  }
}

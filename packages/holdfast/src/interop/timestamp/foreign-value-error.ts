import { LockError } from "../../index.js";
import { quote } from "../../internal.js";

/**
 * What stands under the key is no lock of this dialect: another type, no number, or one of another unit. Nothing was written,
 * and nothing is held; no waiting helps, since somebody is configured otherwise, or uses the key for something else.
 */
export class ForeignValueError extends LockError {
  override readonly name: string = "ForeignValueError";

  readonly code = "ERR_LOCK_FOREIGN_VALUE";
  readonly key: string;
  /** The first 80 characters of what stands there. */
  readonly found: string;

  constructor(lockName: string, facts: { readonly key: string; readonly found: string; readonly expected: string }) {
    const { key, found, expected } = facts;
    super(
      lockName,
      `${quote(lockName)} was not acquired: the key ${quote(key)} should hold ${expected}, and has ${quote(found)}; nothing was written, and waiting does not help.`,
    );
    this.key = key;
    this.found = found;
  }
}

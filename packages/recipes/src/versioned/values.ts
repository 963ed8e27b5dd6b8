/** A value and its version. */
export interface VersionedValue<Value> {
  /** The value, decoded separately for each result; undefined if it was never set or was deleted. */
  readonly value: Value | undefined;
  /** A safe integer that rises with each write; 0 if the value was never set. */
  readonly version: number;
}

/** The result of a write. If another writer was first, `ok` is false, and the result contains the current value. */
export type WriteOutcome<Value> =
  | { readonly ok: true; readonly version: number }
  | ({ readonly ok: false } & VersionedValue<Value>);

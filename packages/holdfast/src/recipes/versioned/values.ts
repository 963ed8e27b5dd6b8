/** A value and its version. */
export interface VersionedValue<Value> {
  /** Undefined if there is none: it was never set, or was deleted. Each is decoded anew. */
  readonly value: Value | undefined;
  /** A safe integer; 0 if it was never set. */
  readonly version: number;
}

/** How a write ended. Somebody else having been first is an answer, with what is there now. */
export type WriteOutcome<Value> =
  | { readonly ok: true; readonly version: number }
  | ({ readonly ok: false } & VersionedValue<Value>);

/** Identifies a lock in requests. */
import type { LockKind } from "holdfast/admin";

/** The kind, name and key of a lock. */
export interface LockPlace {
  readonly kind: LockKind;
  readonly name: string;
  readonly key: string | undefined;
}

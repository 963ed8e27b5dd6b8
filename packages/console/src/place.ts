/** Which lock is meant, by whoever asks for one. */
import type { LockKind } from "holdfast/admin";

/** Which lock. */
export interface LockPlace {
  readonly kind: LockKind;
  readonly name: string;
  readonly key: string | undefined;
}

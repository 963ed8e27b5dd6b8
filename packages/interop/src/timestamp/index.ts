/**
 * `@holdfast/interop/timestamp`: locks shared with services in other languages that use SETNX with a time in the value.
 * docs/interop.md describes which dialect to choose, what each guarantees, and how to migrate away from it.
 */
export {
  cppGetSet,
  type DeadlineDialect,
  javaGetSet,
  javaUuid,
  phpLua,
  phpSetGet,
  type TimestampDialect,
  type UniqueDialect,
} from "./dialect.js";
export { ForeignValueError } from "./foreign-value-error.js";
export type { PeerEvent } from "./peer-events.js";
export { type TimestampLock, type TimestampOptions, timestampLock } from "./timestamp-lock.js";

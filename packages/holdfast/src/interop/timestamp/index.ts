/**
 * `holdfast/timestamp`: locks that are shared with services in other languages which follow one of the articles on SETNX with
 * a time in the value. Which to choose, what each can give, and how to leave it: docs/interop.md.
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

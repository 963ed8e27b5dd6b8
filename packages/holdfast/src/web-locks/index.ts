/** `holdfast/web-locks`: the lock manager of the W3C Web Locks API, shared by all processes that use one server. */

export { lockManager } from "./lock-manager.js";
export type {
  WebLock,
  WebLockCallback,
  WebLockInfo,
  WebLockManager,
  WebLockMode,
  WebLockOptions,
  WebLockSnapshot,
} from "./types.js";

/** The public surface: what is not exported here may change without notice. */
export {
  AcquireTimeoutError,
  ClosedError,
  type Holder,
  LeaseLostError,
  LockError,
  type LossReason,
  StoreError,
  type StoreFailure,
  UnsupportedError,
} from "./core/errors.js";
export type { Outcome, Reply, ReplyForm, Script } from "./core/script.js";
export type { Inbox, Store } from "./core/store.js";

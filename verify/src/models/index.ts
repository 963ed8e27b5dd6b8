/** The sequential model of each kind of lock: its legal replies to one operation at a time. */
export type { Exclusive, Holding } from "./exclusive.js";
export { fenced } from "./fenced.js";
export { type Fifo, fifo, fifoOperations } from "./fifo.js";
export type { Share } from "./holders.js";
export { type Latch, latch } from "./latch.js";
export { mutex } from "./mutex.js";
export { ownerAware } from "./owner-aware.js";
export { type PermitRules, type Permits, permits } from "./permits.js";
export { type ReadWrite, type ReadWriteRules, readWrite } from "./read-write.js";
export { reentrant } from "./reentrant.js";
export { reentrantFenced } from "./reentrant-fenced.js";
export { EXPIRY, type ExpiryRules, type ServerLease, type Unbounded } from "./server-lease.js";
export { type JudgedOperation, timed } from "./timed.js";

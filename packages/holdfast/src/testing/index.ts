/**
 * The contract suites for authors of custom stores. They need vitest. A store that passes the unmodified suites keeps
 * every guarantee, except those about faults of the server itself.
 */
export { barrierContract } from "./barrier.contract.js";
export { closingContract } from "./closing.contract.js";
export { conditionContract } from "./condition.contract.js";
export { countDownLatchContract } from "./count-down-latch.contract.js";
export { electionContract } from "./election.contract.js";
export { type Abilities, exclusiveContract } from "./exclusive.contract.js";
export { AWKWARD_NAMES } from "./inspection.contract.js";
export { multiLockContract } from "./multi-lock.contract.js";
export { mutexContract } from "./mutex.contract.js";
export { nativeReleaseContract } from "./native-release.contract.js";
export { pauseContract } from "./pause.contract.js";
export { readWriteLockContract, writeLockContract } from "./read-write-lock.contract.js";
export { type QuorumContractOptions, redlockContract, redlockStoreContract } from "./redlock.contract.js";
export { reentrantMutexContract } from "./reentrant-mutex.contract.js";
export { retainContract } from "./retain.contract.js";
export { semaphoreContract } from "./semaphore.contract.js";
export { semaphoreOfFiveContract, semaphoreOfOneContract } from "./semaphore-as-mutex.contract.js";
export type { LockUnderTest, MakeLock, Particulars, Scene, ServerUnderTest, StoreUnderTest } from "./subject.js";
export { webLocksContract, webLocksQueryContract } from "./web-locks.contract.js";

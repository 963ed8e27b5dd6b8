/** Runs every contract on every store. Each store has its own file so that the stores run in parallel. */
import { describe } from "vitest";

import {
  barrierContract,
  closingContract,
  conditionContract,
  countDownLatchContract,
  electionContract,
  multiLockContract,
  mutexContract,
  nativeReleaseContract,
  pauseContract,
  readWriteLockContract,
  redlockStoreContract,
  reentrantMutexContract,
  retainContract,
  type StoreUnderTest,
  semaphoreContract,
  semaphoreOfFiveContract,
  semaphoreOfOneContract,
  webLocksContract,
  webLocksQueryContract,
  writeLockContract,
} from "../../src/testing/index.js";
import { asStores, stores } from "../stores.js";

/** The contract of each kind. A new kind is one entry here. */
export const contracts: Readonly<Record<string, (subject: StoreUnderTest) => void>> = {
  mutex: mutexContract,
  retain: retainContract,
  "native release": nativeReleaseContract,
  "reentrant-mutex": reentrantMutexContract,
  "multi-lock": multiLockContract,
  condition: conditionContract,
  "count-down-latch": countDownLatchContract,
  barrier: barrierContract,
  election: electionContract,
  semaphore: semaphoreContract,
  "semaphore with one permit, as a mutex": semaphoreOfOneContract,
  "semaphore with five permits, four of them taken, as a mutex": semaphoreOfFiveContract,
  "read-write-lock": readWriteLockContract,
  "write lock, as a mutex": writeLockContract,
  "web-locks": webLocksContract,
  "web-locks, query": webLocksQueryContract,
  pause: pauseContract,
  closing: closingContract,
  // The whole suite runs in tests/redlock, on one store.
  redlock: (subject) => redlockStoreContract(asStores(subject)),
};

/** Kinds that repeat the contract of the mutex. They test the permits code, which is the same on every store. */
const ONCE_MORE: readonly string[] = [
  "semaphore with one permit, as a mutex",
  "semaphore with five permits, four of them taken, as a mutex",
  "write lock, as a mutex",
];

/** Every kind except those that repeat another contract. */
export const EACH_ONCE: readonly string[] = Object.keys(contracts).filter((kind) => !ONCE_MORE.includes(kind));

/**
 * Stores on which a plain run checks only a selection, because another client library or version covers the same
 * topology in full. The selections cover queues with and without permits, waits in two places, locks in several slots,
 * and notifications without a queue.
 */
export const SELECTED: Readonly<Record<string, readonly string[]>> = {
  "ioredis 6 over TLS": ["mutex", "semaphore"],
  "node-redis 6 over TLS": ["mutex", "condition"],
  "ioredis 6 with a key prefix": ["mutex", "native release", "semaphore", "multi-lock", "redlock"],
  "node-redis 6": EACH_ONCE,
  GLIDE: EACH_ONCE,
  "ioredis 6 behind Sentinel": EACH_ONCE,
  "ioredis 5": ["mutex", "native release", "condition", "barrier"],
  iovalkey: ["mutex", "native release", "semaphore", "election"],
  "node-redis 5": ["mutex", "native release", "read-write-lock", "count-down-latch"],
  "node-redis 4": ["mutex", "native release", "semaphore", "multi-lock", "redlock"],
  "node-redis 6 on a cluster": ["mutex", "semaphore", "condition", "web-locks", "web-locks, query"],
  "GLIDE on a cluster": ["mutex", "multi-lock", "count-down-latch"],
  "node-redis 6 behind Sentinel": ["mutex"],
  // tests/permissions checks the commands that each script calls.
  "ioredis 6 with minimal permissions": [
    ...["condition", "count-down-latch", "barrier", "semaphore", "read-write-lock", "redlock", "web-locks"],
  ],
  "ioredis 6 on a cluster with minimal permissions": ["condition", "semaphore"],
};

/** Registers the contracts on a store. A store in `SELECTED` runs all of them only if `HOLDFAST_TESTS` is `all`. */
export function contractsOn(storeName: string): void {
  const subject = stores.find(({ name }) => name === storeName);
  if (subject === undefined) throw new Error(`there is no store ${storeName} in tests/stores.ts`);
  const selected = process.env.HOLDFAST_TESTS === "all" ? undefined : SELECTED[storeName];
  for (const [kind, contract] of Object.entries(contracts)) {
    if (selected !== undefined && !selected.includes(kind)) continue;
    // The servers of a quorum are independent of each other.
    if (kind === "redlock" && /cluster|Sentinel/.test(storeName)) continue;
    // The user of these stores may not list all locks; tests/permissions/looking.test.ts covers that.
    if (kind === "web-locks, query" && storeName.includes("minimal permissions")) continue;
    describe(`${kind} on ${subject.name}`, () => contract(subject));
  }
}

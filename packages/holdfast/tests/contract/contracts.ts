/** Every contract on every store: the whole matrix, by construction. One file for each store, so that they run side by side. */
import { describe } from "vitest";

import {
  barrierContract,
  closingContract,
  conditionContract,
  countDownLatchContract,
  electionContract,
  multiLockContract,
  mutexContract,
  pauseContract,
  readWriteLockContract,
  redlockStoreContract,
  reentrantMutexContract,
  type StoreUnderTest,
  semaphoreContract,
  semaphoreOfFiveContract,
  semaphoreOfOneContract,
  writeLockContract,
} from "../../src/testing/index.js";
import { asStores, stores } from "../stores.js";

/** The contract of each kind. A new kind is one entry here. */
export const contracts: Readonly<Record<string, (subject: StoreUnderTest) => void>> = {
  mutex: mutexContract,
  "reentrant-mutex": reentrantMutexContract,
  "multi-lock": multiLockContract,
  condition: conditionContract,
  "count-down-latch": countDownLatchContract,
  barrier: barrierContract,
  election: electionContract,
  semaphore: semaphoreContract,
  "semaphore of one, as a mutex": semaphoreOfOneContract,
  "semaphore of five with four taken, as a mutex": semaphoreOfFiveContract,
  "read-write-lock": readWriteLockContract,
  "write lock, as a mutex": writeLockContract,
  pause: pauseContract,
  closing: closingContract,
  // The whole suite runs in tests/redlock, on one store.
  redlock: (subject) => redlockStoreContract(asStores(subject)),
};

/** Kinds whose contract is the mutex's once more. They try the machine of permits, which is the same on every store. */
const ONCE_MORE: readonly string[] = [
  "semaphore of one, as a mutex",
  "semaphore of five with four taken, as a mutex",
  "write lock, as a mutex",
];

/** Every kind once. */
export const EACH_ONCE: readonly string[] = Object.keys(contracts).filter((kind) => !ONCE_MORE.includes(kind));

/**
 * Stores on which a plain run checks a selection, because the same topology is checked in full with another client library, or
 * another version of this one: a queue with and without permits, waiting in two places, locks in several slots, and being
 * told without a queue.
 */
export const SELECTED: Readonly<Record<string, readonly string[]>> = {
  "ioredis 6 with a key prefix": ["mutex", "semaphore", "multi-lock", "redlock"],
  "node-redis 6": EACH_ONCE,
  GLIDE: EACH_ONCE,
  "ioredis 6 behind Sentinel": EACH_ONCE,
  "ioredis 5": ["mutex", "condition", "barrier"],
  iovalkey: ["mutex", "semaphore", "election"],
  "node-redis 5": ["mutex", "read-write-lock", "count-down-latch"],
  "node-redis 4": ["mutex", "semaphore", "multi-lock", "redlock"],
  "node-redis 6 on a cluster": ["mutex", "semaphore", "condition"],
  "GLIDE on a cluster": ["mutex", "multi-lock", "count-down-latch"],
  "node-redis 6 behind Sentinel": ["mutex"],
  // What every script calls is in tests/permissions.
  "ioredis 6 with the least rights": [
    ...["condition", "count-down-latch", "barrier", "semaphore", "read-write-lock", "redlock"],
  ],
  "ioredis 6 on a cluster with the least rights": ["condition", "semaphore"],
};

/** Registers the contracts on the store of that name: all, unless it is in `SELECTED` and `HOLDFAST_TESTS` is not `all`. */
export function contractsOn(storeName: string): void {
  const subject = stores.find(({ name }) => name === storeName);
  if (subject === undefined) throw new Error(`there is no store ${storeName} in tests/stores.ts`);
  const selected = process.env.HOLDFAST_TESTS === "all" ? undefined : SELECTED[storeName];
  for (const [kind, contract] of Object.entries(contracts)) {
    if (selected !== undefined && !selected.includes(kind)) continue;
    // Servers of a quorum are each for itself.
    if (kind === "redlock" && /cluster|Sentinel/.test(storeName)) continue;
    describe(`${kind} on ${subject.name}`, () => contract(subject));
  }
}

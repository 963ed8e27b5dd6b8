/** Every contract on every store: the whole matrix, by construction. One file for each store, so that they run side by side. */
import { describe } from "vitest";

import {
  barrierContract,
  conditionContract,
  countDownLatchContract,
  electionContract,
  multiLockContract,
  mutexContract,
  readWriteLockContract,
  redlockStoreContract,
  reentrantMutexContract,
  type StoreUnderTest,
  semaphoreContract,
  semaphoreOfFiveContract,
  semaphoreOfOneContract,
  writeLockContract,
} from "../../src/testing/index.js";
import { stores } from "../stores.js";

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
  // The whole suite runs in tests/redlock, on one store.
  redlock: redlockStoreContract,
};

/** Registers all contracts on the store of that name. */
export function contractsOn(storeName: string): void {
  const subject = stores.find(({ name }) => name === storeName);
  if (subject === undefined) throw new Error(`there is no store ${storeName} in tests/stores.ts`);
  for (const [kind, contract] of Object.entries(contracts)) {
    describe(`${kind} on ${subject.name}`, () => contract(subject));
  }
}

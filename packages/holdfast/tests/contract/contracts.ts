/** Every contract on every store: the whole matrix, by construction. One file for each store, so that they run side by side. */
import { describe } from "vitest";

import {
  conditionContract,
  multiLockContract,
  mutexContract,
  reentrantMutexContract,
  type StoreUnderTest,
} from "../../src/testing/index.js";
import { stores } from "../stores.js";

/** The contract of each kind. A new kind is one entry here. */
export const contracts: Readonly<Record<string, (subject: StoreUnderTest) => void>> = {
  mutex: mutexContract,
  "reentrant-mutex": reentrantMutexContract,
  "multi-lock": multiLockContract,
  condition: conditionContract,
};

/** Registers all contracts on the store of that name. */
export function contractsOn(storeName: string): void {
  const subject = stores.find(({ name }) => name === storeName);
  if (subject === undefined) throw new Error(`there is no store ${storeName} in tests/stores.ts`);
  for (const [kind, contract] of Object.entries(contracts)) {
    describe(`${kind} on ${subject.name}`, () => contract(subject));
  }
}

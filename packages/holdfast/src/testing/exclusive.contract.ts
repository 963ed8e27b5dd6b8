/** The suite of every lock that can act as a mutex: exclusion, leases, inspection. */
import { exclusionContract } from "./exclusion.contract.js";
import { inspectionContract } from "./inspection.contract.js";
import { leaseContract } from "./lease.contract.js";
import { type MakeLock, type StoreUnderTest, useScene } from "./subject.js";

/** Registers the cases. Call it inside a `describe` that names the kind and the store. */
export function exclusiveContract(subject: StoreUnderTest, makeLock: MakeLock): void {
  const scene = useScene(subject, makeLock);
  exclusionContract(scene);
  leaseContract(scene, makeLock);
  inspectionContract(scene, makeLock);
}

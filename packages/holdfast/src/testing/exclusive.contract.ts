/** The suite for every lock that can act as a mutex: exclusion, leases, forced release, export and inspection. */
import { exclusionContract } from "./exclusion.contract.js";
import { forcedReleaseContract, noForcedReleaseContract } from "./forced-release.contract.js";
import { handOverContract, noHandOverContract } from "./hand-over.contract.js";
import { inspectionContract } from "./inspection.contract.js";
import { leaseContract } from "./lease.contract.js";
import { type MakeLock, type Particulars, type StoreUnderTest, useScene } from "./subject.js";

/** Features that not every kind has. A kind must refuse a missing feature with an UnsupportedError. */
export interface Abilities {
  /** Whether `forceRelease` takes the lock from its holder. @default true */
  readonly forcedRelease?: boolean | undefined;
  /** Whether a lease can be exported and adopted. @default true */
  readonly handOver?: boolean | undefined;
}

/** Registers the tests. Call it inside a `describe` that names the kind and the store. */
export function exclusiveContract(
  subject: StoreUnderTest,
  makeLock: MakeLock,
  { forcedRelease = true, handOver = true, ...particulars }: Abilities & Particulars = {},
): void {
  const scene = useScene(subject, makeLock, particulars);
  const { hasQueue = true } = particulars;
  exclusionContract(scene, hasQueue);
  leaseContract(scene, makeLock);
  if (forcedRelease) forcedReleaseContract(scene);
  else noForcedReleaseContract(scene);
  if (handOver) handOverContract(scene);
  else noHandOverContract(scene);
  inspectionContract(scene, makeLock, hasQueue);
}

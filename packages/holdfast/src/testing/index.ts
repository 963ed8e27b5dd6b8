/**
 * The contract suites, for whoever writes a store: they need vitest. A store that passes them unchanged keeps
 * every promise that does not depend on the server's own faults.
 */
export { exclusiveContract } from "./exclusive.contract.js";
export { AWKWARD_NAMES } from "./inspection.contract.js";
export { mutexContract } from "./mutex.contract.js";
export type { MakeLock, Scene, ServerUnderTest, StoreUnderTest } from "./subject.js";

/** The public API. Anything that is not exported here may change without notice. */
export type { Clock } from "./clock.js";
export { type DumpedKey, Keyspace, type KeyspaceOptions } from "./keyspace.js";
export { loadInterpreter } from "./lua/interpreter.js";
export type { ScriptReply } from "./lua/values.js";
export type { Scheduler } from "./scheduler.js";
export { type EmbeddedOptions, type EmbeddedStore, embedded } from "./store.js";

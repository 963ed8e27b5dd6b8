/**
 * Modules of Node that take long to load, loaded when they are first used.
 *
 * `node:crypto` alone was a quarter of the time that importing this library takes. So was `node:process`: an import of it reads
 * every property of `process`, and so makes the standard streams. What the library takes of `process` is therefore read from
 * the global. A client library has loaded both by the time that the first lock is asked for.
 */

/** @returns `node:crypto` */
export function crypto(): typeof import("node:crypto") {
  return process.getBuiltinModule("node:crypto");
}

/**
 * `@holdfast/console/internal`: the parts of the console that the CLI uses.
 *
 * Unstable: anything here may change or disappear in any version, including patch releases. Applications use
 * `@holdfast/console`.
 */

export { ACTIONS } from "./api.js";
export type { Link } from "./backend.js";
export { consoleOn } from "./create-console.js";

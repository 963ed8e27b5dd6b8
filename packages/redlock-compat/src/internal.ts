/**
 * `@holdfast/redlock-compat/internal`: the entry point for the other packages of this repository.
 *
 * Unstable: anything here may change or disappear in any version, including patch releases.
 */

export * as scripts from "./generated/scripts.js";

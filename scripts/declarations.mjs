// @ts-check
/** The published declaration files of a package: without maps, and without declarations marked `@internal`. */
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { execPath } from "node:process";

import { root, tools } from "./setup.mjs";

/**
 * Writes the declarations of a compiled package. The compiled files in the repository keep the `@internal` declarations,
 * because the packages use them from each other.
 *
 * @param {string} home    the folder of the package
 * @param {string} target  folder for the declarations
 * @throws Error  the package does not compile
 */
export function writeDeclarations(home, target) {
  const options = ["--stripInternal", "--declarationMap", "false", "--composite", "false", "--incremental", "false"];
  const { status, stdout } = spawnSync(
    execPath,
    [tools.tsc, "-p", join(home, "tsconfig.json"), "--emitDeclarationOnly", ...options, "--outDir", target],
    { cwd: root, encoding: "utf8" },
  );
  if (status !== 0) throw new Error(`the declarations of ${home} cannot be written:\n${stdout}`);
}

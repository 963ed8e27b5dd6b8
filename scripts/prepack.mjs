// @ts-check
/**
 * `prepack` and `postpack` of the packages, so that `npm pack` and `npm publish` publish the same files:
 *
 *     node ../../scripts/prepack.mjs            replaces dist and package.json with the published ones
 *     node ../../scripts/prepack.mjs restore    puts the compiled files back
 *
 * The first fails and replaces nothing if the package is not compiled, or if the result is not bundled. npm runs both in
 * the folder of the package. If packing was interrupted, the next run of either first puts the compiled files back.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { argv, cwd, exit } from "node:process";
import { pathToFileURL } from "node:url";

import { pack } from "./pack.mjs";
import { entryFiles } from "./release-checks.mjs";
import { root } from "./setup.mjs";

const home = cwd();
/** Holds the compiled files while the published ones are in their place. */
const aside = join(home, ".cache-pack-aside");
const REPLACED = ["dist", "package.json"];

restore();
if (argv[2] !== "restore") await replace();

async function replace() {
  const { name } = manifestIn(home);
  const [uncompiled] = missingEntries(home);
  const target = join(home, ".cache-pack-new");
  if (uncompiled !== undefined)
    refuse(target, `${name} is not compiled: ${uncompiled} is missing; run npm run build in ${root}`);
  const own = join(home, "scripts/pack.mjs");
  if (existsSync(own)) await (await import(pathToFileURL(own).href)).pack(target);
  else await pack(home, target);
  const [unmade] = missingEntries(target);
  if (unmade !== undefined) refuse(target, `${name} is not bundled: ${unmade} was not written; see scripts/pack.mjs`);
  const [copied] = unbundled(target);
  if (copied !== undefined)
    refuse(target, `${name} is not bundled: ${copied} is the compiled file; see scripts/pack.mjs`);
  mkdirSync(aside);
  for (const one of REPLACED) {
    renameSync(join(home, one), join(aside, one));
    renameSync(join(target, one), join(home, one));
  }
  rmSync(target, { recursive: true });
}

/**
 * @param {string} target
 * @param {string} why
 */
function refuse(target, why) {
  rmSync(target, { recursive: true, force: true });
  console.error(`prepack: ${why}`);
  exit(1);
}

/** @param {string} folder */
function manifestIn(folder) {
  return JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
}

/**
 * The entry points that the package names but does not contain.
 *
 * @param {string} folder
 * @returns {string[]}
 */
function missingEntries(folder) {
  return entryFiles(manifestIn(folder)).filter((file) => !existsSync(join(folder, file)));
}

/**
 * The code files that equal the compiled ones, and so are not bundled. Pages of the console do not count, because their
 * build bundles them.
 *
 * @param {string} target
 * @returns {string[]}
 */
function unbundled(target) {
  return readdirSync(join(target, "dist"), { recursive: true, encoding: "utf8" })
    .map((file) => join("dist", file))
    .filter((file) => /\.[cm]?js$/.test(file) && !file.startsWith(join("dist/ui/")) && existsSync(join(home, file)))
    .filter((file) => readFileSync(join(target, file), "utf8") === readFileSync(join(home, file), "utf8"));
}

function restore() {
  if (!existsSync(aside)) return;
  for (const name of REPLACED.filter((one) => existsSync(join(aside, one)))) {
    rmSync(join(home, name), { recursive: true, force: true });
    renameSync(join(aside, name), join(home, name));
  }
  rmSync(aside, { recursive: true });
}

// @ts-check
/**
 * `prepack` and `postpack` of the packages, so that `npm pack` and `npm publish` publish the same files:
 *
 *     node ../../scripts/prepack.mjs            replaces dist and package.json by what is published
 *     node ../../scripts/prepack.mjs restore    puts the compiled files back
 *
 * npm runs both in the folder of the package. If packing was interrupted, the next run of either puts the compiled files back
 * first.
 */
import { existsSync, mkdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { argv, cwd } from "node:process";
import { fileURLToPath, pathToFileURL } from "node:url";

import { pack } from "./pack.mjs";

const home = cwd();
const root = fileURLToPath(new URL("..", import.meta.url));
/** The compiled files, while the published ones are in their place. */
const aside = join(home, ".cache-pack-aside");
const REPLACED = ["dist", "package.json"];

restore();
if (argv[2] !== "restore") await replace();

async function replace() {
  if (!existsSync(join(home, "dist"))) throw new Error(`${home} is not compiled: run npm run build in ${root}`);
  const target = join(home, ".cache-pack-new");
  const own = join(home, "scripts/pack.mjs");
  if (existsSync(own)) await (await import(pathToFileURL(own).href)).pack(target);
  else await pack(home, target);
  mkdirSync(aside);
  for (const name of REPLACED) {
    renameSync(join(home, name), join(aside, name));
    renameSync(join(target, name), join(home, name));
  }
  rmSync(target, { recursive: true });
}

function restore() {
  if (!existsSync(aside)) return;
  for (const name of REPLACED.filter((one) => existsSync(join(aside, one)))) {
    rmSync(join(home, name), { recursive: true, force: true });
    renameSync(join(aside, name), join(home, name));
  }
  rmSync(aside, { recursive: true });
}

/**
 * Installs the package as users do: runs `npm pack` on the output of scripts/pack.mjs, and unpacks it in an empty
 * folder.
 */
import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { pack } from "../../scripts/pack.mjs";

/** The paths of the installed package. */
export interface Installed {
  /** The link that a shell finds as `holdfast`. */
  readonly command: string;
  /** The folder of the package. */
  readonly home: string;
}

/**
 * Installs the package into `folder` without its dependencies, because the command needs none.
 *
 * @param folder  outside the repository, so that no module of the repository is found in a parent folder
 */
export async function install(folder: string): Promise<Installed> {
  const home = join(folder, "node_modules/@holdfast/cli");
  const draft = join(folder, "draft");
  await pack(join(draft, "written"));
  const flags = ["--pack-destination", draft, "--ignore-scripts", "--offline"];
  execFileSync("npm", ["pack", join(draft, "written"), ...flags], { stdio: "ignore" });
  const tarball = readdirSync(draft).find((file) => file.endsWith(".tgz")) ?? "no tarball";
  execFileSync("tar", ["-xzf", join(draft, tarball), "-C", draft]);
  // An npm tarball contains one folder with this name.
  cpSync(join(draft, "package"), home, { recursive: true });
  rmSync(draft, { recursive: true });
  const { bin } = JSON.parse(readFileSync(join(home, "package.json"), "utf8")) as { bin: { holdfast: string } };
  const command = join(folder, "node_modules/.bin/holdfast");
  mkdirSync(dirname(command));
  symlinkSync(join(home, bin.holdfast), command);
  return { command, home };
}

/** Adds the dependencies of the package from the repository. */
export function addDependencies(folder: string): void {
  const packages = { holdfast: "../../../holdfast", "@holdfast/embedded": "../../../embedded" };
  for (const [name, place] of Object.entries(packages)) {
    symlinkSync(fileURLToPath(new URL(place, import.meta.url)), join(folder, "node_modules", name));
  }
}

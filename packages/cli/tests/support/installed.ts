/** The package as somebody installs it: what `npm pack` makes of what scripts/pack.mjs writes, in an empty folder. */
import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { pack } from "../../scripts/pack.mjs";

/** Where it is. */
export interface Installed {
  /** What a shell finds as `holdfast`: a link. */
  readonly command: string;
  /** The package's own folder. */
  readonly home: string;
}

/**
 * Installs it into `folder`, and nothing that it depends on: the command needs nothing beside it.
 *
 * @param folder  outside the repository, so that nothing of it is found by going up
 */
export async function install(folder: string): Promise<Installed> {
  const home = join(folder, "node_modules/@holdfast/cli");
  const draft = join(folder, "draft");
  await pack(join(draft, "written"));
  const flags = ["--pack-destination", draft, "--ignore-scripts", "--offline"];
  execFileSync("npm", ["pack", join(draft, "written"), ...flags], { stdio: "ignore" });
  const tarball = readdirSync(draft).find((file) => file.endsWith(".tgz")) ?? "no tarball";
  execFileSync("tar", ["-xzf", join(draft, tarball), "-C", draft]);
  // A tarball of npm has one folder, by this name.
  cpSync(join(draft, "package"), home, { recursive: true });
  rmSync(draft, { recursive: true });
  const { bin } = JSON.parse(readFileSync(join(home, "package.json"), "utf8")) as { bin: { holdfast: string } };
  const command = join(folder, "node_modules/.bin/holdfast");
  mkdirSync(dirname(command));
  symlinkSync(join(home, bin.holdfast), command);
  return { command, home };
}

/** Adds what the package depends on, from the repository. */
export function addDependencies(folder: string): void {
  const packages = { holdfast: "../../../holdfast", "@holdfast/embedded": "../../../embedded" };
  for (const [name, place] of Object.entries(packages)) {
    symlinkSync(fileURLToPath(new URL(place, import.meta.url)), join(folder, "node_modules", name));
  }
}

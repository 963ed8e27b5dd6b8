/** Which release this is. */
import { existsSync, readFileSync } from "node:fs";

/** The packages that this file can be part of: it is bundled into the command line too. */
const PACKAGES = ["@holdfast/console", "@holdfast/cli"];

/** The version of the package, from its manifest; empty if the manifest cannot be found. */
export function version(): string {
  for (const up of ["../package.json", "../../package.json", "../../../package.json"]) {
    const manifest = new URL(up, import.meta.url);
    if (!existsSync(manifest)) continue;
    const text = readFileSync(manifest, "utf8");
    const { name = "", version: found }: { name?: string; version?: string } = JSON.parse(text);
    if (PACKAGES.includes(name)) return found ?? "";
  }
  return "";
}

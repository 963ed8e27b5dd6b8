/** The version of the package. */
import { existsSync, readFileSync } from "node:fs";

/** The packages that can contain this file; it is also bundled into the CLI. */
const PACKAGES = ["@holdfast/console", "@holdfast/cli"];

/** The version from the package's manifest; empty if the manifest cannot be found. */
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

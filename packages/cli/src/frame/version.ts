/** Finds the version of this release. */
import { existsSync, readFileSync } from "node:fs";

/**
 * The version in the manifest of the package; empty if the manifest cannot be found. Searches several parent folders,
 * because this file may be bundled.
 */
export function version(): string {
  for (const up of ["../package.json", "../../package.json", "../../../package.json"]) {
    const manifest = new URL(up, import.meta.url);
    if (!existsSync(manifest)) continue;
    const { name, version: found }: { name?: string; version?: string } = JSON.parse(readFileSync(manifest, "utf8"));
    if (name === "@holdfast/cli") return found ?? "";
  }
  return "";
}

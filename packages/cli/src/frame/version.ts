/** Which release this is. */
import { existsSync, readFileSync } from "node:fs";

/** Of the package, from its manifest; empty if that cannot be found. This file may be bundled, so it looks further up as well. */
export function version(): string {
  for (const up of ["../package.json", "../../package.json", "../../../package.json"]) {
    const manifest = new URL(up, import.meta.url);
    if (!existsSync(manifest)) continue;
    const { name, version: found }: { name?: string; version?: string } = JSON.parse(readFileSync(manifest, "utf8"));
    if (name === "@holdfast/cli") return found ?? "";
  }
  return "";
}

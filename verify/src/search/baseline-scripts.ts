/** The scripts of a protocol 0 client, from the stored build in `verify/baseline`. */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { gunzipSync } from "node:zlib";

const ARCHIVE = fileURLToPath(new URL("../../baseline/holdfast-protocol-0.tgz", import.meta.url));
const FILE = "package/dist/generated/scripts.js";
const BLOCK = 512;

/** The text of a file in a tar archive. Each file is preceded by a header block with its name and size. */
function fileIn(archive: Buffer, name: string): string {
  for (let at = 0; at < archive.length; ) {
    const text = (from: number, length: number): string =>
      archive.toString("latin1", at + from, at + from + length).replace(/\0.*$/s, "");
    const size = Number.parseInt(text(124, 12).trim() || "0", 8);
    const content = at + BLOCK;
    if (text(0, 100) === name) return archive.toString("utf8", content, content + size);
    at = content + Math.ceil(size / BLOCK) * BLOCK;
  }
  throw new Error(`there is no ${name} in the archive`);
}

/** Maps the name of each script, prefixed with `0/`, to its source. */
export async function baselineScripts(): Promise<ReadonlyMap<string, string>> {
  const source = fileIn(gunzipSync(readFileSync(ARCHIVE)), FILE);
  const url = `data:text/javascript;base64,${Buffer.from(source).toString("base64")}`;
  const scripts: Record<string, { readonly name?: string; readonly source?: string }> = await import(url);
  return new Map(
    Object.values(scripts).flatMap(({ name, source: text }) =>
      name === undefined || text === undefined ? [] : [[`0/${name}`, text] as const],
    ),
  );
}

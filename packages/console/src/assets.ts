/** The built pages: one document and its files, read into memory once. */
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import type { ServerResponse } from "node:http";
import { extname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { send } from "./respond.js";

const TYPES: Readonly<Record<string, string>> = {
  ".css": "text/css; charset=utf-8",
  ".html": "text/html; charset=utf-8",
  ".ico": "image/x-icon",
  ".js": "text/javascript; charset=utf-8",
  ".png": "image/png",
  ".svg": "image/svg+xml",
  ".woff2": "font/woff2",
};

interface Asset {
  readonly bytes: Buffer;
  readonly type: string;
}

/** Files by their path below the folder. Requests are only looked up in this list, so no path can leave the folder. */
export class Assets {
  readonly #folder: string;
  #files: ReadonlyMap<string, Asset> | undefined;

  /** @param folder  the folder of the pages; by default the build's output */
  constructor(folder: string = builtPages()) {
    this.#folder = folder;
  }

  /** Sends the file; returns false if there is none at that path. The document has the path "". */
  serve(res: ServerResponse, path: string): boolean {
    this.#files ??= read(this.#folder);
    const asset = this.#files.get(path === "" ? "index.html" : path);
    if (asset === undefined) return path === "" && this.#complain(res);
    // The names of these files contain a digest, so they never change and may be cached forever.
    const isForEver = path.startsWith("assets/");
    const cache = isForEver ? "public, max-age=31536000, immutable" : "no-cache";
    send(res, 200, { "Content-Type": asset.type, "Cache-Control": cache }, asset.bytes);
    return true;
  }

  #complain(res: ServerResponse): true {
    const text =
      "The pages of the console were not built. npm run build makes them; the API below api/ works without them.\n";
    send(res, 501, { "Content-Type": "text/plain; charset=utf-8", "Cache-Control": "no-store" }, text);
    return true;
  }
}

function read(folder: string): ReadonlyMap<string, Asset> {
  const files = new Map<string, Asset>();
  for (const path of listed(folder)) {
    const type = TYPES[extname(path)];
    // Skips files of other types, such as source maps and type declarations.
    if (type !== undefined) files.set(path, { bytes: readFileSync(join(folder, path)), type });
  }
  return files;
}

function listed(folder: string): readonly string[] {
  try {
    return readdirSync(folder, { recursive: true, encoding: "utf8" })
      .filter((path) => statSync(join(folder, path)).isFile())
      .map((path) => path.replaceAll("\\", "/"));
  } catch {
    return [];
  }
}

/** The folder of the built pages. Its path relative to this module depends on whether the module was bundled. */
function builtPages(): string {
  const bundled = fileURLToPath(new URL("./console/ui/", import.meta.url));
  return existsSync(bundled) ? bundled : fileURLToPath(new URL("./ui/", import.meta.url));
}

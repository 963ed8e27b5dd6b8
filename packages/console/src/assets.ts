/** The pages: one document and the files it names, read once, as the build left them beside this module. */
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

/** Files by their path below the folder. What is asked for is only ever looked up here, so no path leads out of it. */
export class Assets {
  readonly #folder: string;
  #files: ReadonlyMap<string, Asset> | undefined;

  /** @param folder  by default the one that the build of the pages writes */
  constructor(folder: string = builtPages()) {
    this.#folder = folder;
  }

  /** Answers with the file; false if there is none of that path. The document has the path "". */
  serve(res: ServerResponse, path: string): boolean {
    this.#files ??= read(this.#folder);
    const asset = this.#files.get(path === "" ? "index.html" : path);
    if (asset === undefined) return path === "" && this.#complain(res);
    // The build puts a digest into the name of whatever the document loads, and the document names the present ones.
    const isForEver = path.startsWith("assets/");
    const cache = isForEver ? "public, max-age=31536000, immutable" : "no-cache";
    send(res, 200, { "Content-Type": asset.type, "Cache-Control": cache }, asset.bytes);
    return true;
  }

  #complain(res: ServerResponse): true {
    const text =
      "The pages of the console were not built. npm run build makes them; the API below api/ works without.\n";
    send(res, 501, { "Content-Type": "text/plain; charset=utf-8", "Cache-Control": "no-store" }, text);
    return true;
  }
}

function read(folder: string): ReadonlyMap<string, Asset> {
  const files = new Map<string, Asset>();
  for (const path of listed(folder)) {
    const type = TYPES[extname(path)];
    // Source maps and type declarations may lie there too.
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

/** Beside this module; where that was bundled, its file is nearer to the root of the package. */
function builtPages(): string {
  const bundled = fileURLToPath(new URL("./console/ui/", import.meta.url));
  return existsSync(bundled) ? bundled : fileURLToPath(new URL("./ui/", import.meta.url));
}

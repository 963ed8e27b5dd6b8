// @ts-check
/** Serves the built site on a free port of 127.0.0.1 and prints its address. */
import { createReadStream, statSync } from "node:fs";
import { createServer } from "node:http";
import { extname, join, normalize } from "node:path";
import { fileURLToPath } from "node:url";

const DIST = fileURLToPath(new URL(".vitepress/dist", import.meta.url));
/** @type {Readonly<Record<string, string>>} */
const TYPES = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript",
  ".css": "text/css",
  ".json": "application/json",
  ".svg": "image/svg+xml",
  ".png": "image/png",
  ".woff2": "font/woff2",
};

const server = createServer((request, response) => {
  const path = normalize(decodeURIComponent(new URL(request.url ?? "/", "http://site").pathname));
  const file = [path, `${path}.html`, join(path, "index.html")]
    .map((candidate) => join(DIST, candidate))
    .find((candidate) => statSync(candidate, { throwIfNoEntry: false })?.isFile() === true);
  response.statusCode = file === undefined ? 404 : 200;
  const shown = file ?? join(DIST, "404.html");
  response.setHeader("content-type", TYPES[extname(shown)] ?? "application/octet-stream");
  createReadStream(shown).pipe(response);
});
server.listen(0, "127.0.0.1", () => {
  const address = server.address();
  if (typeof address === "object") console.log(`http://127.0.0.1:${address?.port}`);
});

// @ts-check
/**
 * Builds the pages of the console: `src/ui` into `dist/ui`, static files that ask for nothing from elsewhere.
 *
 * Skipped while no source is newer than what was built, since every command that builds calls it.
 */
import { existsSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "vite";

const here = fileURLToPath(new URL("..", import.meta.url));
const root = join(here, "src/ui");
const outDir = join(here, "dist/ui");

/** `theme.js` runs before the first paint, so it is no module; as it is no module, Vite would complain of it in the page. */
const theme = {
  name: "theme",
  transformIndexHtml: () => [
    { tag: "script", attrs: { src: "./theme.js" }, injectTo: /** @type {const} */ ("head-prepend") },
  ],
};

/** Builds it if that is needed. @returns {Promise<boolean>} whether it was */
export async function buildPages() {
  if (isFresh()) return false;
  await build({
    configFile: false,
    root,
    // Relative, so that it works below any base path.
    base: "./",
    publicDir: join(root, "public"),
    logLevel: "warn",
    plugins: [theme],
    oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
    build: {
      outDir,
      emptyOutDir: true,
      target: "es2022",
      // No file is put into another as a data address: the policy of the page allows none.
      assetsInlineLimit: 0,
      modulePreload: { polyfill: false },
    },
  });
  return true;
}

function isFresh() {
  const built = join(outDir, "index.html");
  if (!existsSync(built)) return false;
  const builtAtMs = statSync(built).mtimeMs;
  const sources = [root, join(here, "src/api.ts"), join(here, "src/filter.ts"), fileURLToPath(import.meta.url)];
  return sources.flatMap(filesIn).every((file) => statSync(file).mtimeMs <= builtAtMs);
}

/** @param {string} path @returns {string[]} */
function filesIn(path) {
  if (!statSync(path).isDirectory()) return [path];
  return readdirSync(path, { withFileTypes: true }).flatMap((entry) => filesIn(join(path, entry.name)));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await buildPages();

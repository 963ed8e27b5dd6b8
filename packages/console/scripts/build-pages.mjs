// @ts-check
/**
 * Builds the console's pages from `src/ui` into `dist/ui`: static files that load nothing from other origins.
 *
 * Every build command calls this, so it does nothing if the build is newer than all sources.
 */
import { existsSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "vite";

const here = fileURLToPath(new URL("..", import.meta.url));
const root = join(here, "src/ui");
const outDir = join(here, "dist/ui");

/**
 * `theme.js` must run before the first paint, so it is a classic script. Vite would warn about that in the HTML, so
 * it is built separately.
 */
const theme = {
  name: "theme",
  transformIndexHtml: () => [
    { tag: "script", attrs: { src: "./theme.js" }, injectTo: /** @type {const} */ ("head-prepend") },
  ],
};

/** Builds the pages if necessary. @returns {Promise<boolean>} whether they were built */
export async function buildPages() {
  if (isFresh()) return false;
  await build({
    configFile: false,
    root,
    // Relative, so that the pages work below any base path.
    base: "./",
    publicDir: join(root, "public"),
    logLevel: "warn",
    plugins: [theme],
    // A test that builds the pages runs in another mode, for which JSX would be compiled with the places in its source.
    oxc: { jsx: { runtime: "automatic", importSource: "preact", development: false } },
    build: {
      outDir,
      emptyOutDir: true,
      target: "es2022",
      // The page's content security policy allows no data URLs, so Vite must not inline assets.
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

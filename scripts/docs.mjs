// @ts-check
/**
 * npm run docs: builds the documentation site into `site/.vitepress/dist`, with the API reference that TypeDoc generates
 * from the doc comments. It fails on a broken link, and on a page that is missing from `site/contents.mjs`.
 *
 *     npm run docs                the site
 *     npm run docs -- --serve     the site, served on a port of 127.0.0.1 until Ctrl-C
 *     npm run docs -- --check     the site, opened in a real browser; the last line is `N passed, N failed`
 */
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { argv, env, execPath, exit } from "node:process";

import { CHINESE, ENGLISH } from "../site/contents.mjs";
import { placeOf, writePages } from "../site/pages.mjs";
import { runTests } from "./run-tests.mjs";
import { aptInstall, build, dependencies, mayInstall, node, onPath, root, stop } from "./setup.mjs";

const SITE = join(root, "site");
const VITEPRESS = join(SITE, "node_modules/vitepress/bin/vitepress.js");

await dependencies();
await build();
toolsOfSite();
await pages();
if (argv.includes("--serve")) exit(await node([join(SITE, "serve.mjs")]));
if (!argv.includes("--check")) exit(0);

if (onPath("chromium") === undefined && env.HOLDFAST_CHROMIUM === undefined) {
  if (env.CI === "true" && onPath("apt-get") !== undefined && mayInstall()) await aptInstall("chromium");
  else stop("chromium is missing; install it (apt-get install chromium), or set HOLDFAST_CHROMIUM to a binary");
}
exit(await runTests(["--config", "site/vitest.config.ts"], {}));

/** Installs VitePress and TypeDoc in `site/`, unless these versions are installed. */
function toolsOfSite() {
  const versions = JSON.parse(readFileSync(join(SITE, "package.json"), "utf8")).devDependencies;
  const isInstalled = ["vitepress", "typedoc", "typedoc-plugin-markdown"].every((name) => {
    const file = join(SITE, "node_modules", name, "package.json");
    return existsSync(file) && JSON.parse(readFileSync(file, "utf8")).version === versions[name];
  });
  if (isInstalled) return;
  console.log("setup: installing the tools of the site (npm ci)");
  const args = ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline", "--loglevel=error"];
  const cli = env.npm_execpath;
  const [command, first] = cli?.endsWith(".js") ? [execPath, [cli]] : ["npm", []];
  const { status } = spawnSync(command, [...first, ...args], { cwd: SITE, stdio: ["ignore", "inherit", "inherit"] });
  if (status !== 0) stop("the tools of the site could not be installed; run: npm install, in site/");
}

async function pages() {
  const places = writePages();
  const named = [...listed(ENGLISH, ""), ...listed(CHINESE, "zh/")];
  const missing = places.filter((place) => !/^(zh\/)?index\.md$/.test(place) && !named.includes(place));
  if (missing.length > 0) stop(`no section of site/contents.mjs names ${missing.join(", ")}; add each to one`);
  if ((await node([join(SITE, "reference.mjs")])) !== 0) stop("the API reference could not be generated, see above");
  if ((await node([VITEPRESS, "build", SITE])) !== 0) stop("the site could not be built, see above");
  console.log(`site: ${readdirSync(join(SITE, ".vitepress/dist"), { recursive: true }).filter(isPage).length} pages`);
}

/**
 * @param {readonly import("../site/contents.mjs").Section[]} sections
 * @param {string} folder
 */
function listed(sections, folder) {
  return sections
    .flatMap((section) => section.pages)
    .map((entry) => placeOf(`docs/${folder}${typeof entry === "string" ? entry : entry[0]}.md`));
}

/** @param {string | Buffer} file */
function isPage(file) {
  return String(file).endsWith(".html");
}

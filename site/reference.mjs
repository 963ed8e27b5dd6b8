// @ts-check
/**
 * Writes the API reference to `site/pages/api/`: a page for each entry point of each package, made by TypeDoc from the doc
 * comments.
 *
 * The entry points are those of `exports` in each `package.json`, so a new one has its page without more.
 */
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Application } from "typedoc";

import { PAGES } from "./pages.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));
const FOLDER = join(PAGES, "api");
/** Entry points that are for other packages of Holdfast and for its tests. */
const NOT_FOR_USERS = /\/(internal|text|simulation|testing|package\.json)$/;

/**
 * @returns {{ name: string, source: string }[]} what users import, and the source file behind it
 */
function entryPoints() {
  return readdirSync(join(root, "packages")).flatMap((folder) => {
    const file = join(root, "packages", folder, "package.json");
    if (!existsSync(file)) return [];
    /** @type {{ name: string, exports?: Record<string, string | { types: string }> }} */
    const manifest = JSON.parse(readFileSync(file, "utf8"));
    return Object.entries(manifest.exports ?? {}).flatMap(([path, target]) => {
      const name = manifest.name + path.slice(1);
      if (typeof target === "string" || NOT_FOR_USERS.test(name)) return [];
      const source = target.types.replace("./dist/", `packages/${folder}/src/`).replace(/\.d\.ts$/, ".ts");
      return [{ name, source: join(root, source) }];
    });
  });
}

await writeReference();

/** Writes the pages, and the part of the sidebar that lists them. */
async function writeReference() {
  const entries = entryPoints();
  const app = await Application.bootstrapWithPlugins({
    plugin: ["typedoc-plugin-markdown"],
    tsconfig: join(root, "site/tsconfig.json"),
    entryPoints: entries.map(({ source }) => source),
    name: "API",
    entryFileName: "index",
    outputFileStrategy: "modules",
    readme: "none",
    hidePageHeader: true,
    hideBreadcrumbs: true,
    disableSources: true,
    excludeInternal: true,
    excludePrivate: true,
    // The sources are compiled by npm run check.
    skipErrorChecking: true,
    logLevel: "Error",
  });
  const found = app.getEntryPoints() ?? [];
  for (const entryPoint of found)
    entryPoint.displayName = entries.find(({ source }) => source === entryPoint.sourceFile.fileName)?.name ?? "";
  const project = app.converter.convert(found);
  if (found.length !== entries.length || app.logger.hasErrors())
    throw new Error("TypeDoc could not read all sources, see above");
  await app.outputs.writeOutput({ name: "markdown", path: FOLDER }, project);
  const index = readFileSync(join(FOLDER, "index.md"), "utf8");
  const pages = [...index.matchAll(/^- \[(.+)\]\((.+)\.md\)$/gm)]
    .map(([, text = "", page = ""]) => ({ text, link: `/api/${page}` }))
    // `holdfast` before `@holdfast/…`.
    .sort((a, b) => Number(a.text.startsWith("@")) - Number(b.text.startsWith("@")));
  writeFileSync(join(FOLDER, "sidebar.json"), JSON.stringify(pages, undefined, 2));
}

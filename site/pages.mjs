// @ts-check
/**
 * Writes the pages of the site to `site/pages/`: the README as the first page, and everything in `docs/` except the decision
 * records. Adapts links to the site.
 *
 * A link to a file that is not on the site (source code, a decision record) becomes the path of that file in the repository.
 */
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join, posix } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));

/** The folder of the written pages. */
export const PAGES = join(root, "site/pages");

/**
 * @param {string} path a file of the repository, with `/`
 * @returns {string | undefined} its place among the pages; undefined if it has none
 */
export function placeOf(path) {
  if (path === "README.md") return "index.md";
  if (path === "README.zh-CN.md") return "zh/index.md";
  if (path === "docs/README.md") return "contents.md";
  if (path.startsWith("docs/adr/") || !path.startsWith("docs/")) return undefined;
  const place = path.slice("docs/".length);
  return posix.basename(place) === "README.md" ? posix.join(posix.dirname(place), "index.md") : place;
}

/**
 * @param {string} text the text of a page
 * @param {string} from its path in the repository
 * @param {(path: string) => boolean} exists whether the repository has such a file or folder
 */
export function withLinksOfSite(text, from, exists) {
  const here = placeOf(from) ?? "";
  // Every second part is a code block.
  return text
    .split(/(^[ \t]*(?:```|~~~)[\s\S]*?^[ \t]*(?:```|~~~)[ \t]*$)/m)
    .map((part, index) =>
      index % 2 === 1 ? part : part.replace(/(!?)\[((?:[^[\]]|\[[^\]]*\])*)\]\(([^()\s]+)\)/g, linkOfSite),
    )
    .join("");

  /** @param {string} whole @param {string} image @param {string} label @param {string} target */
  function linkOfSite(whole, image, label, target) {
    if (/^([a-z]+:|#)/.test(target)) return whole;
    const [file = "", anchor] = target.split("#");
    const path = posix.join(posix.dirname(from), file);
    if (!exists(path)) throw new Error(`${from}: the link ${target} leads to no file; name one that exists`);
    const place = placeOf(path);
    if (place === undefined) return image === "" ? `${label} (\`${path}\`)` : label;
    const relative = posix.relative(posix.dirname(here), place);
    return `${image}[${label}](${relative.startsWith(".") ? relative : `./${relative}`}${anchor === undefined ? "" : `#${anchor}`})`;
  }
}

/** Replaces all pages and returns their places. */
export function writePages() {
  rmSync(PAGES, { recursive: true, force: true });
  const docs = readdirSync(join(root, "docs"), { recursive: true, encoding: "utf8" }).map((file) =>
    `docs/${file}`.replaceAll("\\", "/"),
  );
  const places = [];
  for (const file of ["README.md", "README.zh-CN.md", ...docs]) {
    const place = placeOf(file);
    if (place === undefined || !existsSync(join(root, file)) || statSync(join(root, file)).isDirectory()) continue;
    const to = join(PAGES, place);
    mkdirSync(dirname(to), { recursive: true });
    if (!file.endsWith(".md")) {
      cpSync(join(root, file), to);
      continue;
    }
    const text = readFileSync(join(root, file), "utf8");
    writeFileSync(
      to,
      withLinksOfSite(text, file, (path) => existsSync(join(root, path))),
    );
    places.push(place);
  }
  return places;
}

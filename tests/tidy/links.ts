/** Links between the Markdown files of this repository: the file must exist, and so must the heading after `#`. */
import { posix } from "node:path";
import type { Source } from "./sources.js";

/** Removes code from Markdown, because links in code are not links. */
function withoutCode(markdown: string): string {
  return markdown.replace(/^[ \t]*```[\s\S]*?^[ \t]*```[ \t]*$/gm, "").replace(/`[^`\n]*`/g, "");
}

/** The anchors that GitHub makes from a document's headings: lower case, without punctuation, `-` for a space. */
export function anchorsOf(markdown: string): Set<string> {
  const anchors = new Set<string>();
  const headings = markdown.replace(/^[ \t]*```[\s\S]*?^[ \t]*```[ \t]*$/gm, "").matchAll(/^#{1,6} +(.+?) *$/gm);
  for (const [, heading = ""] of headings) {
    const slug = heading
      .replace(/\[([^\]]*)\]\([^)]*\)/g, "$1")
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\p{M}\p{Pc} -]/gu, "")
      .replaceAll(" ", "-");
    // A repeated heading gets a number.
    let anchor = slug;
    for (let copy = 1; anchors.has(anchor); copy += 1) anchor = `${slug}-${copy}`;
    anchors.add(anchor);
  }
  for (const [, id = ""] of markdown.matchAll(/<a (?:id|name)="([^"]+)"/g)) anchors.add(id);
  return anchors;
}

/** Relative links without an existing file or heading. @param exists  whether a path from the root is a file or a folder */
export function deadLinks(files: readonly Source[], exists: (path: string) => boolean): string[] {
  const documents = new Map(files.filter(({ path }) => path.endsWith(".md")).map((file) => [file.path, file.text]));
  const anchors = new Map<string, Set<string>>();
  const hasAnchor = (path: string, anchor: string): boolean => {
    const text = documents.get(path);
    if (text === undefined) return true;
    const known = anchors.get(path) ?? anchorsOf(text);
    anchors.set(path, known);
    return known.has(anchor);
  };
  return [...documents].flatMap(([path, text]) =>
    [...withoutCode(text).matchAll(/\]\(<?([^()\s>]+)>?(?: "[^"]*")?\)/g)].flatMap(([, link = ""]) => {
      if (/^[a-z][a-z+.-]*:/i.test(link)) return [];
      const [file = "", anchor = ""] = link.split("#");
      const target = file === "" ? path : posix.join(posix.dirname(path), file);
      if (target.startsWith("../") || !exists(target)) return [`${path}: no file ${link}`];
      return anchor === "" || hasAnchor(target, decodeURIComponent(anchor)) ? [] : [`${path}: no heading ${link}`];
    }),
  );
}

// @ts-check
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

import { root } from "./setup.mjs";

/** Question larger files in review. This is a guide, not a limit: nothing fails. */
const LONG = 400;

/** @returns {{ file: string, lines: number }[]} the long files among the code of this repository */
export function longFiles() {
  return execFileSync("git", ["ls-files", "*.ts", "*.mjs", "*.lua"], { cwd: root, encoding: "utf8" })
    .split("\n")
    .filter((file) => file !== "" && !file.includes("/generated/") && existsSync(join(root, file)))
    .map((file) => ({ file, lines: readFileSync(join(root, file), "utf8").split("\n").length - 1 }))
    .filter(({ lines }) => lines > LONG);
}

const LIBRARY = "packages/holdfast/src/";
/** Folders of the library that are not kinds. */
const NO_KINDS = ["admin", "core", "foreign-lock", "generated", "period-marker", "stores", "testing"];

/**
 * Lines of code per part of the library, without blank lines, comments and generated files.
 *
 * @returns {{ part: string, files: number, lines: number }[]}
 */
export function codeLines() {
  const files = execFileSync("git", ["ls-files", `${LIBRARY}*.ts`, `${LIBRARY}*.lua`], { cwd: root, encoding: "utf8" })
    .split("\n")
    .filter((file) => file !== "" && !file.includes("/generated/") && existsSync(join(root, file)))
    .map((file) => ({
      path: file.slice(LIBRARY.length),
      lines: countCode(readFileSync(join(root, file), "utf8"), file),
    }));
  /** @param {string} path */
  const folder = (path) => (path.includes("/") ? path.slice(0, path.indexOf("/")) : "");
  /** @type {ReadonlyArray<readonly [string, (path: string) => boolean]>} */
  const parts = [
    ["core", (path) => folder(path) === "core"],
    ["kinds and the files that put them together", (path) => path.endsWith(".ts") && !NO_KINDS.includes(folder(path))],
    ["stores", (path) => folder(path) === "stores"],
    ["Lua of core and kinds", (path) => path.endsWith(".lua") && !NO_KINDS.includes(folder(path))],
    [
      "admin and locks of other systems",
      (path) => NO_KINDS.includes(folder(path)) && !/^(core|stores|testing)\//.test(path),
    ],
  ];
  return parts.map(([part, isPart]) => {
    const own = files.filter(({ path }) => isPart(path));
    return { part, files: own.length, lines: own.reduce((sum, { lines }) => sum + lines, 0) };
  });
}

/**
 * @param {string} text
 * @param {string} file
 */
function countCode(text, file) {
  const code = file.endsWith(".lua")
    ? text.replace(/--.*$/gm, "")
    : text.replace(/\/\*[\s\S]*?\*\//g, "").replace(/^\s*\/\/.*$/gm, "");
  return code.split("\n").filter((line) => line.trim() !== "").length;
}

// @ts-check
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

import { root } from "./setup.mjs";

/** From here on a file is worth a question in review. A guide, not a limit: nothing fails on it. */
const LONG = 250;

/** @returns {{ file: string, lines: number }[]} the long files among the code of this repository */
export function longFiles() {
  return execFileSync("git", ["ls-files", "*.ts", "*.mjs", "*.lua"], { cwd: root, encoding: "utf8" })
    .split("\n")
    .filter((file) => file !== "" && !file.includes("/generated/") && existsSync(join(root, file)))
    .map((file) => ({ file, lines: readFileSync(join(root, file), "utf8").split("\n").length - 1 }))
    .filter(({ lines }) => lines > LONG);
}

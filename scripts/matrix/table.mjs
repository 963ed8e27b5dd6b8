// @ts-check
/** The tables of docs/platforms.md, with the last result of each suite of each cell. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { root } from "../setup.mjs";
import { cells } from "./cells.mjs";
import { pins } from "./fetch.mjs";

const FILE = join(root, "docs/platforms.md");
const NOT_RUN = "not run";

/** @param {"server" | "runtime"} kind */
const marks = (kind) => [`<!-- ${kind}s: written by npm run matrix -- --record -->`, `<!-- end of ${kind}s -->`];

/**
 * @param {{ cell: string, suite: string, passed: number, failed: number }[]} results  the results of the suites that ran
 * @param {Date} now
 */
export function record(results, now) {
  const date = now.toISOString().slice(0, 10);
  let text = readFileSync(FILE, "utf8");
  for (const kind of /** @type {const} */ (["server", "runtime"])) {
    const [begin = "", end = ""] = marks(kind);
    const from = text.indexOf(begin) + begin.length;
    const old = text.slice(from, text.indexOf(end));
    text = `${text.slice(0, from)}\n\n${table(kind, old, results, date)}\n\n${text.slice(text.indexOf(end))}`;
  }
  writeFileSync(FILE, text);
}

/**
 * @param {"server" | "runtime"} kind
 * @param {string} old  the current table
 * @param {Parameters<typeof record>[0]} results
 * @param {string} date
 */
function table(kind, old, results, date) {
  const before = entries(old);
  const rows = cells.filter((cell) => cell[kind] !== undefined);
  const titles = [...new Set(rows.flatMap((cell) => cell.suites.map(({ title }) => title)))];
  const head = [kind, "version", ...titles];
  const lines = rows.map((cell) => {
    const version = pins[cell.name]?.shows ?? "";
    const counts = titles.map((title) => {
      if (!cell.suites.some((suite) => suite.title === title)) return "";
      const result = results.find((each) => each.cell === cell.name && each.suite === title);
      const kept = before.get(`${cell.title}|${version}|${title}`) ?? NOT_RUN;
      if (result === undefined) return kept;
      const failures = result.failed === 0 ? "" : `, **${result.failed} failed**`;
      return `${result.passed} passed${failures}, ${date}`;
    });
    return [cell.title, version, ...counts];
  });
  return [head, head.map(() => "---"), ...lines].map((row) => `| ${row.join(" | ")} |`).join("\n");
}

/**
 * The cells of a table by row, version and column. The version is part of the key, because results of another version do
 * not count for this one.
 *
 * @param {string} text
 * @returns {Map<string, string>}
 */
function entries(text) {
  const [head = [], , ...rows] = text
    .trim()
    .split("\n")
    .map((line) =>
      line
        .split("|")
        .slice(1, -1)
        .map((cell) => cell.trim()),
    );
  return new Map(
    rows.flatMap(([title = "", version = "", ...counts]) =>
      counts.map((count, at) => /** @type {const} */ ([`${title}|${version}|${head[at + 2] ?? ""}`, count])),
    ),
  );
}

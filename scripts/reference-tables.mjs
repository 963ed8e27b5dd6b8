// @ts-check
/**
 * Generates the tables of options and errors in docs/ from the doc comments of the options and error classes, and the table
 * of metrics from their definitions. `npm run fix` writes them.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import ts from "typescript";

import { root } from "./setup.mjs";

/** Maps each marker in a document to the declarations in the table after it. */
const OPTIONS = {
  "docs/options.md": {
    "acquire, run and tryAcquire": [["packages/holdfast/src/core/options.ts", "TryAcquireOptions", "AcquireOptions"]],
    run: [["packages/holdfast/src/core/options.ts", "RunOptions"]],
    election: [["packages/holdfast/src/election/election.ts", "CampaignOptions", "ElectionOptions"]],
  },
  "docs/options-holdfast.md": {
    createHoldfast: [["packages/holdfast/src/holdfast-options.ts", "HoldfastOptions"]],
    "close and closeOnSignal": [
      ["packages/holdfast/src/core/closing.ts", "CloseOptions"],
      ["packages/holdfast/src/close-on-signal.ts", "CloseOnSignalOptions"],
    ],
  },
  "docs/options-kinds.md": {
    "mutex and reentrantMutex": [["packages/holdfast/src/holdfast-options.ts", "LockOptions"]],
    semaphore: [["packages/holdfast/src/semaphore/semaphore.ts", "SemaphoreOptions", "SemaphoreTryAcquireOptions"]],
    "countDownLatch and barrier": [
      ["packages/holdfast/src/count-down-latch/count-down-latch.ts", "LatchOptions"],
      ["packages/holdfast/src/barrier/barrier.ts", "BarrierOptions"],
    ],
    "pause and resume": [["packages/holdfast/src/pausing/pausing.ts", "Which", "PauseOptions", "ResumeOptions"]],
  },
};

const ERRORS = {
  holdfast: ["packages/holdfast/src/core/errors.ts"],
  "@holdfast/recipes": [
    "packages/recipes/src/fence/errors.ts",
    "packages/recipes/src/once/errors.ts",
    "packages/recipes/src/counter/errors.ts",
    "packages/recipes/src/coalesce/errors.ts",
    "packages/recipes/src/cache/errors.ts",
    "packages/recipes/src/versioned/errors.ts",
    "packages/recipes/src/lead/errors.ts",
  ],
  "@holdfast/interop": ["packages/interop/src/timestamp/foreign-value-error.ts"],
};

/** @param {string} path  from the root */
function parsed(path) {
  return ts.createSourceFile(path, readFileSync(join(root, path), "utf8"), ts.ScriptTarget.ES2023, true);
}

/**
 * The doc comment of a declaration: its text as one line, and the value of `@default`.
 *
 * @param {ts.Node} node
 */
function documented(node) {
  const doc = ts.getJSDocCommentsAndTags(node).find(ts.isJSDoc);
  const tag = doc?.tags?.find(({ tagName }) => tagName.text === "default");
  return {
    text: oneLine(ts.getTextOfJSDocComment(doc?.comment) ?? ""),
    fallback: oneLine(ts.getTextOfJSDocComment(tag?.comment) ?? ""),
  };
}

/** The first sentence of a description. The pages about errors and recipes have the rest. @param {string} text */
function inShort(text) {
  return /^.+?\.(?= |<br>|$)/.exec(text)?.[0] ?? text;
}

/** Formats paragraphs and list items for a cell of a table. @param {string} text */
function oneLine(text) {
  return text
    .trim()
    .replace(/\n\s*\n(?!\s*- )/g, "<br>")
    .replace(/\s*\n\s*- /g, "<br>• ")
    .replace(/\s*\n\s*/g, " ")
    .replaceAll("|", "\\|");
}

/** @param {string} path @param {readonly string[]} names */
function optionRows(path, names) {
  const file = parsed(path);
  return names.flatMap((name) => {
    const found = file.statements.find((one) => ts.isInterfaceDeclaration(one) && one.name.text === name);
    if (found === undefined || !ts.isInterfaceDeclaration(found)) throw new Error(`${path} has no interface ${name}`);
    return found.members.filter(ts.isPropertySignature).map((member) => {
      const { text, fallback } = documented(member);
      const isRequired = member.questionToken === undefined;
      // A value is code; a sentence such as `none` or "1 000 with `key`" is not.
      const shown = /^[\w"]+$/.test(fallback) && fallback !== "none" ? `\`${fallback}\`` : fallback;
      return `| \`${member.name.getText(file)}\` | ${isRequired ? "required" : shown || "–"} | ${text} |`;
    });
  });
}

/** @param {ReadonlyArray<readonly string[]>} groups  each a path and the names of interfaces in it */
function optionTable(groups) {
  return [
    "| option | default | meaning |",
    "|---|---|---|",
    ...groups.flatMap(([path = "", ...names]) => optionRows(path, names)),
  ];
}

/** @param {string} path */
function errorRows(path) {
  const file = parsed(path);
  return file.statements.filter(ts.isClassDeclaration).flatMap((one) => {
    const code = one.members
      .filter(ts.isPropertyDeclaration)
      .find((member) => member.name.getText(file) === "code" && member.initializer !== undefined);
    if (code === undefined) return [];
    return [
      `| \`${one.name?.text}\` | \`${code.initializer?.getText(file).replaceAll('"', "")}\` | ${inShort(documented(one).text)} |`,
    ];
  });
}

/** The metrics of packages/telemetry, in the order of their definitions. */
function metricRows() {
  const file = parsed("packages/telemetry/src/definitions.ts");
  const constants = file.statements
    .filter(ts.isVariableStatement)
    .flatMap((one) => [...one.declarationList.declarations]);
  const rows = constants.flatMap(({ name, initializer }) => {
    if (initializer === undefined || !ts.isObjectLiteralExpression(initializer)) return [];
    const isOne = propertyOf(initializer, "help") !== undefined;
    const metrics = isOne ? [initializer] : initializer.properties.map((each) => objectIn(each, file));
    return metrics.map((metric) => metricRow(metric, name.getText(file)));
  });
  if (rows.length === 0) throw new Error("packages/telemetry/src/definitions.ts defines no metric");
  return rows;
}

/** @param {ts.ObjectLiteralExpression} metric @param {string} constant  the constant that defines it */
function metricRow(metric, constant) {
  const [name, help, unit, label] = ["name", "help", "unit", "label"].map((key) => {
    const value = propertyOf(metric, key);
    return value !== undefined && ts.isStringLiteral(value) ? value.text : "";
  });
  const values = ["zeros", "others"].flatMap((key) => {
    const value = propertyOf(metric, key);
    return value !== undefined && ts.isArrayLiteralExpression(value)
      ? value.elements.filter(ts.isStringLiteral).map(({ text }) => `\`${text}\``)
      : [];
  });
  const type = constant === "COUNTERS" ? "counter" : constant === "GAUGES" ? "gauge" : "histogram";
  const labels = label === "" ? "–" : [`\`${label}\``, values.join(" ")].filter(Boolean).join(": ");
  return `| \`${name}\` | ${unit === "s" ? `${type}, s` : type} | ${labels} | ${help} |`;
}

/** @param {ts.ObjectLiteralExpression} object @param {string} key */
function propertyOf(object, key) {
  const found = object.properties.find((one) => ts.isPropertyAssignment(one) && one.name.getText() === key);
  return found !== undefined && ts.isPropertyAssignment(found) ? found.initializer : undefined;
}

/** @param {ts.ObjectLiteralElementLike} property @param {ts.SourceFile} file */
function objectIn(property, file) {
  if (ts.isPropertyAssignment(property) && ts.isObjectLiteralExpression(property.initializer))
    return property.initializer;
  throw new Error(`${file.fileName}: not a definition of a metric: ${property.getText(file)}`);
}

/** @returns {ReadonlyMap<string, string>} the text of each document, with tables that match the sources */
export function documents() {
  /** @type {Readonly<Record<string, ReadonlyArray<readonly [string, readonly string[]]>>>} */
  const tables = {
    ...Object.fromEntries(
      Object.entries(OPTIONS).map(([page, its]) => [
        page,
        Object.entries(its).map(([title, groups]) => [title, optionTable(groups)]),
      ]),
    ),
    "docs/error-index.md": Object.entries(ERRORS).map(([title, paths]) => [
      title,
      ["| error | code | meaning |", "|---|---|---|", ...paths.flatMap(errorRows)],
    ]),
    "docs/metrics.md": [["metrics", ["| metric | type | label | meaning |", "|---|---|---|---|", ...metricRows()]]],
  };
  return new Map(
    Object.entries(tables).map(([document, all]) => {
      let text = readFileSync(join(root, document), "utf8");
      for (const [title, rows] of all) {
        const begin = `<!-- table: ${title} -->\n`;
        const end = "\n<!-- end of table -->";
        const from = text.indexOf(begin);
        const to = text.indexOf(end, from);
        if (from < 0 || to < 0) throw new Error(`${document} has no markers for the table: ${title}`);
        text = text.slice(0, from + begin.length) + rows.join("\n") + text.slice(to);
      }
      return [document, text];
    }),
  );
}

/** Writes the documents. @returns {boolean} whether one of them has changed */
export function writeTables() {
  let changed = false;
  for (const [document, text] of documents()) {
    const path = join(root, document);
    if (readFileSync(path, "utf8") === text) continue;
    writeFileSync(path, text);
    changed = true;
  }
  return changed;
}

// @ts-check
/**
 * Breaks the lines of minified code. For an uncaught error, Node prints the line that threw it. In a minified file that
 * line is the whole file, and the reader has to scroll past it to the message.
 */
import { parseAst } from "rolldown/parseAst";

/** @typedef {ReturnType<typeof parseAst>["body"][number]} Statement */

/**
 * Puts each statement, each member of a class, and each statement of a wrapped CommonJS module on a separate line.
 *
 * @param {string} code
 * @returns {string}
 */
export function inShortLines(code) {
  const starts = parseAst(code).body.flatMap((statement) => [statement.start, ...startsIn(statement)]);
  return starts.map((start, at) => code.slice(at === 0 ? 0 : start, starts[at + 1])).join("\n");
}

/**
 * Returns the positions where the parts of the classes and modules in a statement begin.
 *
 * @param {Statement} statement
 * @returns {number[]}
 */
function startsIn(statement) {
  if (statement.type === "ClassDeclaration") return statement.body.body.map(({ start }) => start);
  if (statement.type !== "VariableDeclaration") return [];
  return statement.declarations.flatMap(({ init }) => {
    if (init?.type === "ClassExpression") return init.body.body.map(({ start }) => start);
    return init?.type === "CallExpression" ? init.arguments.flatMap(startsInModule) : [];
  });
}

/**
 * @param {{ type: string, body?: unknown }} argument  of the function that wraps a module
 * @returns {number[]}
 */
function startsInModule({ type, body }) {
  if (type !== "ArrowFunctionExpression") return [];
  const { type: kind, body: statements } = /** @type {{ type: string, body: Statement[] }} */ (body);
  if (kind !== "BlockStatement") return [];
  return statements.flatMap((statement) => [statement.start, ...startsIn(statement)]);
}

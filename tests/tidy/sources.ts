/**
 * The files of this checkout and their syntax trees.
 *
 * A tidy rule is a pure function from files to complaints so that its test can pass a bad sample.
 */
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import ts from "typescript";

/** One file. The path is relative to the root of the checkout and has forward slashes. */
export interface Source {
  readonly path: string;
  readonly text: string;
}

/** Root of the checkout. */
export const ROOT: string = fileURLToPath(new URL("../..", import.meta.url));

const TEXT = /\.(tsx?|mjs|js|lua|json|md|yml|yaml|csv|sh|txt)$|^\.ci\/run$|^[^./]+$|^\.[a-z]+$/;

/** Every text file that git tracks or would track after `git add`. */
export function allFiles(): Source[] {
  return execFileSync("git", ["ls-files", "--cached", "--others", "--exclude-standard"], {
    cwd: ROOT,
    encoding: "utf8",
  })
    .split("\n")
    .filter((path) => TEXT.test(path) && existsSync(join(ROOT, path)))
    .map((path) => ({ path, text: readFileSync(join(ROOT, path), "utf8") }));
}

/** One import, re-export, dynamic import or imported type. */
export interface Import {
  readonly specifier: string;
  readonly isTypeOnly: boolean;
}

/** The syntax tree of a TypeScript or JavaScript file. */
export function parse({ path, text }: Source): ts.SourceFile {
  return ts.createSourceFile(path, text, ts.ScriptTarget.ES2023, true);
}

/** All imports of a file, at any nesting level. Strings and comments do not count. */
export function importsOf(source: Source): Import[] {
  const imports: Import[] = [];
  const add = (specifier: ts.Node | undefined, isTypeOnly: boolean): void => {
    if (specifier !== undefined && ts.isStringLiteral(specifier))
      imports.push({ specifier: specifier.text, isTypeOnly });
  };
  const visit = (node: ts.Node): void => {
    if (ts.isImportDeclaration(node)) add(node.moduleSpecifier, node.importClause?.isTypeOnly ?? false);
    else if (ts.isExportDeclaration(node)) add(node.moduleSpecifier, node.isTypeOnly);
    else if (ts.isImportTypeNode(node) && ts.isLiteralTypeNode(node.argument)) add(node.argument.literal, true);
    else if (ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.ImportKeyword)
      add(node.arguments[0], false);
    ts.forEachChild(node, visit);
  };
  visit(parse(source));
  return imports;
}

/** The source path of a relative specifier: `a/b.ts` for `./b.js` in `a/c.ts`. */
export function resolve(from: string, specifier: string): string {
  return join(from, "..", specifier).replaceAll("\\", "/").replace(/\.js$/, ".ts");
}

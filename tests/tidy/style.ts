import ts from "typescript";

import { parse, type Source } from "./sources.js";

/** Files with a default export. Each importer would choose its own name for it. */
export function defaultExports(files: readonly Source[]): string[] {
  return files.filter((file) => parse(file).statements.some(isDefaultExport)).map(({ path }) => path);
}

function isDefaultExport(node: ts.Statement): boolean {
  if (ts.isExportAssignment(node)) return true;
  if (ts.isExportDeclaration(node) && node.exportClause !== undefined && ts.isNamedExports(node.exportClause))
    return node.exportClause.elements.some(({ name }) => name.text === "default");
  return hasModifier(node, ts.SyntaxKind.DefaultKeyword);
}

/** Exported declarations without a doc comment of their own, as `path: name`. */
export function undocumentedExports(files: readonly Source[]): string[] {
  return files.flatMap((file) => {
    const seen = new Set<string>(); // only the first overload needs a comment
    return parse(file).statements.flatMap((node) => {
      if (!hasModifier(node, ts.SyntaxKind.ExportKeyword)) return [];
      const names = namesOf(node).filter((name) => !seen.has(name));
      for (const name of names) seen.add(name);
      return hasDocComment(node, file.text) ? [] : names.map((name) => `${file.path}: ${name}`);
    });
  });
}

function namesOf(node: ts.Statement): string[] {
  if (ts.isVariableStatement(node)) return node.declarationList.declarations.map(({ name }) => name.getText());
  const name = (node as ts.DeclarationStatement).name; // every other exported statement declares one name
  return [name?.getText() ?? "(unnamed)"];
}

function hasDocComment(node: ts.Node, text: string): boolean {
  return (ts.getLeadingCommentRanges(text, node.pos) ?? []).some(
    ({ pos }) => text.startsWith("/**", pos) && !isHeader(pos),
  );

  /** The first comment of a file is its header if an empty line follows, even without imports after it. */
  function isHeader(pos: number): boolean {
    return /^\/\*\*[\s\S]*?\*\/\s*\n\s*\n/.test(text.slice(pos)) && text.slice(0, pos).trim() === "";
  }
}

function hasModifier(node: ts.Node, kind: ts.SyntaxKind): boolean {
  return ts.canHaveModifiers(node) && (ts.getModifiers(node)?.some((modifier) => modifier.kind === kind) ?? false);
}

/** Files with a name that says nothing about their content. */
export function vagueNames(files: readonly Source[]): string[] {
  return files.map(({ path }) => path).filter((path) => /(^|[/.-])(utils?|helpers?|misc)\.\w+$/.test(path));
}

/** Occurrences of words that must not be committed, as `path:line: word`. */
export function words(files: readonly Source[], word: RegExp): string[] {
  return files.flatMap(({ path, text }) =>
    text.split("\n").flatMap((line, i) => {
      const found = word.exec(line);
      return found === null ? [] : [`${path}:${i + 1}: ${found[0].trim()}`];
    }),
  );
}

/** Notes about unfinished work. They belong in an issue. */
export const UNFINISHED: RegExp = /\b(FIXME|TODO|XXX)\b/;
/** A test that silences all others. */
export const FOCUSED: RegExp = /\b(it|test|describe|suite)(\.\w+)*\.only\b/;
/** A test that does not run. A test that cannot run here must fail instead. */
export const SKIPPED: RegExp = /\b(it|test|describe|suite)(\.\w+)*\.(skip|todo)\b/;
/** Console output. The library communicates via values, errors and diagnostics channels. */
export const CONSOLE: RegExp = /\bconsole\s*\./;
/** Absolute paths, which exist only on one machine. */
export const ABSOLUTE_PATH: RegExp = /(^|[\s"'`(=:,[])\/(work|root|home|tmp|Users)\b(?!\w)/;
/** Registry addresses. Each user configures their own registry. */
export const REGISTRY: RegExp = /"resolved": "http|https?:\/\/[^\s"'/]*(registry|npmjs|npmmirror)[^\s"']*|_authToken/;

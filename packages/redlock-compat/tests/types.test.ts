/** Compares the declarations of the drop-in and the original in both directions, with the TypeScript compiler. */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import ts from "typescript";
import { expect, test } from "vitest";

const HERE = fileURLToPath(new URL(".", import.meta.url));
const ORIGINAL = fileURLToPath(new URL("../../../node_modules/redlock/dist/index.d.ts", import.meta.url));

/**
 * The original's declarations without private members, because a class with private members is compatible only with
 * itself.
 */
const original = readFileSync(ORIGINAL, "utf8").replace(/^ *private \w+;$/gm, "");

const MODULES = `
import * as original from "./original.js";
import * as ours from "../src/index.js";
`;

/** Compiles `code` next to both modules. @returns the compiler's errors */
function complaints(code: string): string[] {
  const files = new Map([
    [`${HERE}original.d.ts`, original],
    [`${HERE}compared.ts`, `${MODULES}${code}`],
  ]);
  const options: ts.CompilerOptions = {
    module: ts.ModuleKind.NodeNext,
    moduleResolution: ts.ModuleResolutionKind.NodeNext,
    target: ts.ScriptTarget.ES2022,
    lib: ["lib.es2023.d.ts", "lib.esnext.disposable.d.ts"],
    types: ["node"],
    strict: true,
    noEmit: true,
    skipLibCheck: true,
  };
  const host = ts.createCompilerHost(options);
  const { fileExists, readFile, getSourceFile } = host;
  host.fileExists = (path) => files.has(path) || fileExists(path);
  host.readFile = (path) => files.get(path) ?? readFile(path);
  host.getSourceFile = (path, languageVersion, ...rest) => {
    const text = files.get(path);
    return text === undefined
      ? getSourceFile(path, languageVersion, ...rest)
      : ts.createSourceFile(path, text, languageVersion, true);
  };
  const program = ts.createProgram([...files.keys()], options, host);
  const source = program.getSourceFile(`${HERE}compared.ts`);
  return ts
    .getPreEmitDiagnostics(program, source)
    .map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, "\n"));
}

const TYPES = ["ClientExecutionResult", "ExecutionResult", "ExecutionStats", "RedlockAbortSignal", "Settings"];
const CLASSES = ["default", "Lock", "ExecutionError", "ResourceLockedError"];

test("each type and class of the original can take the place of ours, and ours of the original's", () => {
  const instances = [...TYPES, ...CLASSES].flatMap((name, at) => [
    `export const a${at} = (value: original.${name}): ours.${name} => value;`,
    `export const b${at} = (value: ours.${name}): original.${name} => value;`,
  ]);
  const classes = CLASSES.flatMap((name, at) => [
    `export const c${at}: typeof ours.${name} = original.${name};`,
    `export const d${at}: typeof original.${name} = ours.${name};`,
  ]);
  // `default` is not allowed as a type name.
  const code = [...instances, ...classes]
    .join("\n")
    .replaceAll(/: (original|ours)\.default/g, ": InstanceType<typeof $1.default>");
  expect(complaints(code)).toEqual([]);
});

test("both modules export the same names", () => {
  const code = `
    export const same: [keyof typeof ours, keyof typeof original] = null as unknown as [keyof typeof original, keyof typeof ours];
  `;
  expect(complaints(code)).toEqual([]);
});

test("a difference is reported", () => {
  const [complaint] = complaints(
    "export const wrong: ours.Settings = { ...(null as unknown as original.Settings), retryCount: '1' };",
  );
  expect(complaint).toContain("not assignable");
});

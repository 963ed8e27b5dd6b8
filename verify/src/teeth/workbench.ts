/**
 * A copy of the repository in a separate folder, in which mistakes can be made.
 *
 * Dependencies are linked; sources are copied and stripped of their types file by file, so that a change takes
 * milliseconds and the checkout is not affected. A change that does not fit throws, because the code has changed and
 * the tooth must follow.
 */
import { spawn } from "node:child_process";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { execPath } from "node:process";
import { fileURLToPath } from "node:url";
import ts from "typescript";
import type { Patch } from "./tooth.js";

const ROOT = fileURLToPath(new URL("../../..", import.meta.url));
const PROJECTS = ["packages/holdfast", "packages/embedded", "verify"] as const;
/** Packages whose scripts share fragments with the library, so that building the scripts needs them. */
const WITH_SCRIPTS = ["packages/recipes", "packages/interop", "packages/redlock-compat"] as const;
const COPIED = [
  ...[...PROJECTS, ...WITH_SCRIPTS].flatMap((project) => [`${project}/package.json`, `${project}/src`]),
  "verify/baseline",
  "packages/holdfast/scripts",
  "packages/holdfast/tests",
  "tests/support",
  // Tests read its ACL rules.
  "docs/permissions.md",
  "vitest.config.ts",
  "package.json",
] as const;
const GENERATED = "packages/holdfast/src/generated";

/** How a program ended. */
export interface Ended {
  /** Undefined if it was killed after the time limit. */
  readonly code: number | undefined;
  readonly stdout: string;
  readonly stderr: string;
}

/** Applies a change to `text`. @throws Error  `from` does not occur exactly once */
export function patched(text: string, { file, from, to }: Patch): string {
  const parts = text.split(from);
  if (parts.length !== 2) throw new Error(`${JSON.stringify(from)} occurs ${parts.length - 1} times in ${file}`);
  return parts.join(to);
}

/** A source file of the checkout, relative to its root. */
export function sourceOf(file: string): string {
  return readFileSync(join(ROOT, file), "utf8");
}

/** A workbench. Always call `dispose` at the end. */
export class Workbench {
  readonly folder: string;
  /** The original text of changed files. */
  readonly #before = new Map<string, string>();
  /** Ends the programs that run in the copy. */
  #end = (): void => {};

  /** @param like  an unchanged workbench, which is faster to copy than the checkout */
  constructor(like?: Workbench) {
    this.folder = realpathSync(mkdtempSync(join(tmpdir(), "holdfast-teeth-")));
    const copied = like === undefined ? COPIED : [...COPIED, ...PROJECTS.map((project) => `${project}/dist`)];
    for (const path of copied) cpSync(join(like?.folder ?? ROOT, path), join(this.folder, path), { recursive: true });
    linkAll("node_modules", this.folder, (name) => name === "holdfast" || name.startsWith("@holdfast"));
    for (const project of PROJECTS) linkAll(`${project}/node_modules`, this.folder, () => false);
    this.#link("packages/holdfast", "node_modules/holdfast");
    this.#link("packages/embedded", "node_modules/@holdfast/embedded");
    if (like !== undefined) return;
    for (const project of PROJECTS) {
      for (const file of readdirSync(join(this.folder, project, "src"), { recursive: true, encoding: "utf8" })) {
        if (file.endsWith(".ts")) this.#compile(`${project}/src/${file}`);
      }
    }
  }

  /** Applies all changes or none. @throws Error  a change does not match, or the scripts cannot be built */
  async apply(patches: readonly Patch[]): Promise<void> {
    const texts = new Map<string, string>();
    for (const change of patches)
      texts.set(change.file, patched(texts.get(change.file) ?? this.#read(change.file), change));
    for (const [file, text] of texts) this.#change(file, text);
    if (!patches.some(({ file }) => file.endsWith(".lua"))) return;
    const files = readdirSync(join(this.folder, GENERATED)).map((name) => `${GENERATED}/${name}`);
    const built = new Map(files.map((file) => [file, this.#read(file)]));
    const { code, stdout, stderr } = await this.node(["packages/holdfast/scripts/build-lua.mjs"], 60_000);
    if (code !== 0) throw new Error(`the scripts cannot be built: ${stderr}${stdout}`);
    for (const [file, text] of built) {
      if (this.#read(file) === text) continue;
      this.#before.set(file, text);
      this.#compile(file);
    }
  }

  /** Undoes all changes. */
  restore(): void {
    for (const [file, text] of this.#before) {
      writeFileSync(join(this.folder, file), text);
      this.#compile(file);
    }
    this.#before.clear();
  }

  /** Runs a program of the copy on this Node. Kills it and its children if it takes longer than `limitMs`. */
  node(args: readonly string[], limitMs: number): Promise<Ended> {
    return new Promise((resolve, reject) => {
      const child = spawn(execPath, [...args], { cwd: this.folder, detached: true, stdio: ["ignore", "pipe", "pipe"] });
      let isLate = false;
      let [stdout, stderr] = ["", ""];
      child.stdout.on("data", (chunk) => (stdout += String(chunk)));
      child.stderr.on("data", (chunk) => (stderr += String(chunk)));
      const endAll = (): void => {
        try {
          if (child.pid !== undefined) process.kill(-child.pid, "SIGKILL");
        } catch {
          // All of its processes have already ended.
        }
      };
      this.#end = endAll;
      const timer = setTimeout(() => {
        isLate = true;
        endAll();
      }, limitMs);
      child.on("error", reject);
      child.on("close", (code) => {
        clearTimeout(timer);
        this.#end = () => {};
        // Processes started by a broken program may outlive it.
        endAll();
        resolve({ code: isLate ? undefined : (code ?? 1), stdout, stderr });
      });
    });
  }

  /** Removes the copy, and ends the programs that run in it. */
  dispose(): void {
    this.#end();
    rmSync(this.folder, { recursive: true, force: true });
  }

  #read(file: string): string {
    return readFileSync(join(this.folder, file), "utf8");
  }

  #change(file: string, text: string): void {
    if (!this.#before.has(file)) this.#before.set(file, this.#read(file));
    writeFileSync(join(this.folder, file), text);
    this.#compile(file);
  }

  #compile(file: string): void {
    const [, project, path] = /^(.+?)\/src\/(.+)\.ts$/.exec(file) ?? [];
    if (project === undefined || path === undefined) return;
    const { outputText } = ts.transpileModule(this.#read(file), {
      // Without a name, the compiler treats every file as `module.ts` and caches the first one.
      fileName: file,
      compilerOptions: {
        target: ts.ScriptTarget.ES2023,
        module: ts.ModuleKind.ESNext,
        verbatimModuleSyntax: true,
      },
    });
    const out = join(this.folder, project, "dist", `${path}.js`);
    mkdirSync(dirname(out), { recursive: true });
    writeFileSync(out, outputText);
  }

  #link(to: string, at: string): void {
    mkdirSync(dirname(join(this.folder, at)), { recursive: true });
    symlinkSync(join(this.folder, to), join(this.folder, at));
  }
}

/** Links the contents of a dependency folder, except for the copy's own packages. */
function linkAll(path: string, folder: string, isOwn: (name: string) => boolean): void {
  if (!existsSync(join(ROOT, path))) return;
  mkdirSync(join(folder, path), { recursive: true });
  for (const name of readdirSync(join(ROOT, path))) {
    // Caches are written to, so each copy has its own.
    if (!isOwn(name) && !name.startsWith("."))
      symlinkSync(realpathSync(join(ROOT, path, name)), join(folder, path, name));
  }
}

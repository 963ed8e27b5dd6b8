import type { Source } from "./sources.js";

const SOURCES = "packages/holdfast/src/";

/** A Lua script, by its kind and verb. */
interface ScriptFile {
  readonly kind: string;
  readonly verb: string;
}

function scripts(files: readonly Source[]): ScriptFile[] {
  return files.flatMap(({ path }) => {
    const [, kind, verb] = /^packages\/holdfast\/src\/(.+)\/([^/]+)\.lua$/.exec(path) ?? [];
    return kind === undefined || verb === undefined || kind === "lua" ? [] : [{ kind, verb }];
  });
}

/** Scripts that no TypeScript file calls. */
export function uncalledScripts(files: readonly Source[]): string[] {
  const callers = files
    .filter(({ path }) => path.startsWith(SOURCES) && path.endsWith(".ts") && !path.includes("/generated/"))
    .map(({ text }) => text)
    .join("\n");
  return scripts(files)
    .map(({ kind, verb }) => `${kind}/${verb}`)
    .filter((name) => !new RegExp(`\\b${constantName(name)}\\b`).test(callers));
}

function constantName(script: string): string {
  return script.replace(/[-/]+(\w)/g, (_, letter: string) => letter.toUpperCase());
}

/**
 * Folders with scripts that are no locks: parts on which kinds stand, what is kept beside locks, what is asked of a server, and
 * what is done to locks of many kinds.
 */
const PARTS: ReadonlySet<string> = new Set([
  "permits",
  "client-record",
  "inbox",
  "server",
  "pausing",
  "admin",
  "period-marker",
]);

/** Kinds that are held through the locks they are made of: those have the keys, and can be inspected. */
const MADE_OF_LOCKS: ReadonlySet<string> = new Set(["multi-lock"]);

/** Locks in the formats of other systems, whose keys and rules are described by those; see docs/interop.md. */
const FOREIGN = /^interop\//;

/** What is built on a lock, and is no lock itself: it has keys, and tests of its own in place of a contract. */
const RECIPE = /^recipes\//;

/** What a kind lacks: its contract suite, its keys in the table of keys, and, if it is held, a way to look at it. */
export function incompleteKinds(files: readonly Source[]): string[] {
  const all = scripts(files);
  const paths = new Set(files.map(({ path }) => path));
  const keys = files.find(({ path }) => path === "docs/redis-keys.md")?.text ?? "";
  const kinds = new Set(all.map(({ kind }) => kind).filter((kind) => !PARTS.has(kind)));

  return [...kinds].flatMap((kind) => {
    const name = kind.slice(kind.lastIndexOf("/") + 1);
    const verbs = new Set(all.filter((script) => script.kind === kind).map(({ verb }) => verb));
    const lacks: string[] = [];
    if (FOREIGN.test(kind)) return verbs.has("acquire") && !verbs.has("inspect") ? [`${kind} has no inspect.lua`] : [];
    if (!RECIPE.test(kind) && !paths.has(`${SOURCES}testing/${name}.contract.ts`))
      lacks.push(`${kind} has no testing/${name}.contract.ts`);
    if (MADE_OF_LOCKS.has(kind)) return lacks;
    if (verbs.has("acquire") && !verbs.has("inspect")) lacks.push(`${kind} has no inspect.lua`);
    // What belongs to another kind, as a condition does, has its keys behind those of that kind.
    if (!keys.includes(`hf:${name}:`) && !keys.includes(`}:${name}:`))
      lacks.push(`${kind} has no row with hf:${name}: in docs/redis-keys.md`);
    return lacks;
  });
}

/** Packages that a user of the library would have to install with it. */
export function runtimeDependencies(packageJson: string): string[] {
  const { dependencies = {}, optionalDependencies = {}, bundleDependencies = [] } = JSON.parse(packageJson);
  return [
    ...Object.keys(dependencies),
    ...Object.keys(optionalDependencies),
    ...Object.values<string>(bundleDependencies),
  ];
}

import type { Source } from "./sources.js";

const SOURCES = "packages/holdfast/src/";

/** A Lua script, identified by its kind and verb. */
interface ScriptFile {
  readonly kind: string;
  readonly verb: string;
}

function scripts(files: readonly Source[]): ScriptFile[] {
  return files.flatMap(({ path }) => {
    const [, folder, kind, verb] = /^packages\/(\w+)\/src\/(.+)\/([^/]+)\.lua$/.exec(path) ?? [];
    if (folder === undefined || kind === undefined || verb === undefined || kind === "lua") return [];
    return [{ kind: folder === "holdfast" ? kind : `${folder}/${kind}`, verb }];
  });
}

/** Scripts that no TypeScript file calls. */
export function uncalledScripts(files: readonly Source[]): string[] {
  const callers = files
    .filter(({ path }) => /^packages\/\w+\/src\/.*\.ts$/.test(path) && !path.includes("/generated/"))
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
 * Folders with scripts that are not lock kinds: code that kinds are built on, records next to locks, server queries,
 * and operations on locks of many kinds.
 */
const PARTS: ReadonlySet<string> = new Set([
  "permits",
  "client-record",
  "inbox",
  "server",
  "pausing",
  "admin",
  "period-marker",
  "web-locks",
]);

/** Kinds composed of other locks, which have the keys and can be inspected. */
const MADE_OF_LOCKS: ReadonlySet<string> = new Set(["multi-lock"]);

/** Locks in the formats of other systems, which document the keys and rules. See docs/interop.md. */
const FOREIGN = /^interop\//;

/** Has the API of another library, which cannot inspect a lock. Its keys are those of that library. */
const DROP_IN = /^redlock-compat\//;

/** Recipes are built on locks but are not locks. They have keys, and their own tests instead of a contract. */
const RECIPE = /^recipes\//;

/** Reports kinds without a contract, without keys in docs/keys*.md of a package or, if they are held, without inspect.lua. */
export function incompleteKinds(files: readonly Source[]): string[] {
  const all = scripts(files);
  const paths = new Set(files.map(({ path }) => path));
  const keys = files
    .flatMap(({ path, text }) => (/^packages\/\w+\/docs\/keys[\w-]*\.md$/.test(path) ? [text] : []))
    .join("\n");
  const kinds = new Set(all.map(({ kind }) => kind).filter((kind) => !PARTS.has(kind)));

  return [...kinds].flatMap((kind) => {
    const name = kind.slice(kind.lastIndexOf("/") + 1);
    const verbs = new Set(all.filter((script) => script.kind === kind).map(({ verb }) => verb));
    const lacks: string[] = [];
    if (DROP_IN.test(kind)) return [];
    if (FOREIGN.test(kind)) return verbs.has("acquire") && !verbs.has("inspect") ? [`${kind} has no inspect.lua`] : [];
    if (!RECIPE.test(kind) && !paths.has(`${SOURCES}testing/${name}.contract.ts`))
      lacks.push(`${kind} has no testing/${name}.contract.ts`);
    if (MADE_OF_LOCKS.has(kind)) return lacks;
    if (verbs.has("acquire") && !verbs.has("inspect")) lacks.push(`${kind} has no inspect.lua`);
    // The keys of a kind that belongs to another one, such as a condition, extend the keys of that kind.
    if (!keys.includes(`hf:${name}:`) && !keys.includes(`}:${name}:`))
      lacks.push(`${kind} has no row with hf:${name}: in docs/keys*.md of its package`);
    return lacks;
  });
}

/** Packages that npm would install along with the library. */
export function runtimeDependencies(packageJson: string): string[] {
  const { dependencies = {}, optionalDependencies = {}, bundleDependencies = [] } = JSON.parse(packageJson);
  return [
    ...Object.keys(dependencies),
    ...Object.keys(optionalDependencies),
    ...Object.values<string>(bundleDependencies),
  ];
}

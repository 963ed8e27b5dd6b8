import { type Import, importsOf, resolve, type Source } from "./sources.js";

const LIBRARY = "packages/holdfast/src/";
/** Code that each kind is built on. See the table in ARCHITECTURE.md and CONTRIBUTING.md. */
const BUILT_ON: Readonly<Record<string, readonly string[]>> = {
  election: ["mutex"],
  "multi-lock": ["mutex"],
  mutex: ["condition"],
  "read-write-lock": ["permits"],
  semaphore: ["permits"],
};
/** Folders of the library that may import the same modules as users. */
const LIKE_A_USER = new Set(["redlock", "pausing", "retain", "web-locks"]);
/** Folders that read or write locks of all kinds: they may import the parts of every kind, but no store. */
const OF_ALL_KINDS = new Set(["admin", "period-marker"]);
/** What the contract suites may import. Stores of other projects run them, so they use only the entry points. */
const WAYS_IN = new Set(["index.ts", "internal.ts", "retain/index.ts", "web-locks/index.ts"]);
const RECIPES = ["@holdfast/recipes", "@holdfast/recipes/internal"];
/** What each package that is built on the library may import besides it. Frameworks are optional peer dependencies. */
const BUILT_ON_LIBRARY: Readonly<Record<string, readonly string[]>> = {
  bullmq: [...RECIPES, "bullmq"],
  console: [...RECIPES, "holdfast/admin", "preact", "preact/hooks", "@preact/signals", "@preact/signals-core"],
  embedded: ["wasmoon"],
  http: [...RECIPES, "express", "fastify", "fastify-plugin", "hono", "hono/factory"],
  interop: [],
  nestjs: [...RECIPES, "@nestjs/common", "@nestjs/core", "reflect-metadata"],
  "node-cron": [...RECIPES, "node-cron"],
  pg: [...RECIPES, "pg"],
  recipes: [],
  // Only types of the clients, like the original.
  "redlock-compat": ["ioredis"],
  telemetry: ["@opentelemetry/api", "prom-client"],
};
/** Entry points of the library for packages that are built on it. */
const LIBRARY_ENTRIES = ["holdfast", "holdfast/internal", "holdfast/period-marker"];
const NOT_A_KIND = new Set(["core", "stores", "generated", "testing", "lua"]);
const CLIENTS = new Set(["ioredis", "iovalkey", "redis", "@redis/client", "@valkey/valkey-glide"]);
/** Code that uses the library as a user does. Its tests may import anything, like all tests. */
const USERS = /^(packages\/cli|bench|verify|examples)\/(?!(?:long-)?tests\/)/;

/** Returns a complaint for each import that the import table does not allow. */
export function forbiddenImports(files: readonly Source[]): string[] {
  return files.flatMap((file) =>
    importsOf(file)
      .filter((entry) => !isAllowed(file.path, entry))
      .map(({ specifier }) => `${file.path} may not import ${specifier}`),
  );
}

function isAllowed(from: string, entry: Import): boolean {
  if (from.startsWith(LIBRARY)) return isAllowedInLibrary(from.slice(LIBRARY.length), entry);
  const [source, name = ""] = /^packages\/([\w-]+)\/src\//.exec(from) ?? [];
  const others = BUILT_ON_LIBRARY[name];
  if (source !== undefined && others !== undefined)
    return isOwn(from, source, entry) || isBuiltIn(entry) || [...LIBRARY_ENTRIES, ...others].includes(entry.specifier);
  const user = USERS.exec(from)?.[0];
  if (user !== undefined)
    return (
      isOwn(from, user, entry) ||
      (!isRelative(entry) && !/^(@holdfast\/\w+|holdfast)\/(src|dist)\b/.test(entry.specifier))
    );
  return true;
}

function isAllowedInLibrary(from: string, entry: Import): boolean {
  const zone = from.includes("/") ? from.slice(0, from.indexOf("/")) : "";
  if (!isRelative(entry)) return isAllowedPackage(zone, entry);

  const to = resolve(from, entry.specifier);
  if (to.startsWith("..")) return false;
  const target = to.includes("/") ? to.slice(0, to.indexOf("/")) : "";
  switch (zone) {
    case "": // index.ts and holdfast.ts assemble the parts
      return true;
    case "core":
      return target === "core";
    case "generated":
      return to === "core/store.ts";
    case "stores":
      return (
        /^core\/(store|errors|error-messages|runtime)\.ts$/.test(to) || (target === "stores" && mayShare(from, to))
      );
    default:
      if (zone === "testing") return target === zone || WAYS_IN.has(to);
      if (OF_ALL_KINDS.has(zone)) return !WAYS_IN.has(to) && target !== "stores" && target !== "testing";
      if (target === zone || target === "core") return true;
      if (LIKE_A_USER.has(zone) && (target === "" || !NOT_A_KIND.has(target))) return true;
      return target === "generated" || (BUILT_ON[zone]?.includes(target) ?? false);
  }
}

function isAllowedPackage(zone: string, entry: Import): boolean {
  if (zone === "generated") return false;
  if (zone === "testing" && entry.specifier === "vitest") return true;
  if (zone === "stores" && CLIENTS.has(entry.specifier)) return entry.isTypeOnly;
  return isBuiltIn(entry);
}

/**
 * Whether one file of `stores` may import another. Stores may import common code but not each other. Exceptions:
 * a cluster store may import the store of its library, and detect.ts may import every store.
 */
function mayShare(from: string, to: string): boolean {
  const isStore = (path: string): boolean =>
    /^stores\/(ioredis|iovalkey|node-redis|glide|detect)(-cluster)?\.ts$/.test(path);
  const isItsCluster = from === to.replace(/\.ts$/, "-cluster.ts");
  return !isStore(to) || isItsCluster || /^stores\/(detect|index)\.ts$/.test(from);
}

function isOwn(from: string, folder: string, entry: Import): boolean {
  return isRelative(entry) && resolve(from, entry.specifier).startsWith(folder);
}

function isRelative({ specifier }: Import): boolean {
  return specifier.startsWith(".");
}

function isBuiltIn({ specifier }: Import): boolean {
  return specifier.startsWith("node:");
}

/** Import cycles, each once, as `a → b → a`. Type imports count, because types in a cycle form one unit. */
export function cycles(files: readonly Source[]): string[] {
  const paths = new Set(files.map(({ path }) => path));
  const sourceOf = (path: string): string => (paths.has(`${path}x`) ? `${path}x` : path); // a component is a .tsx
  const graph = new Map(
    files.map((file) => [
      file.path,
      importsOf(file)
        .filter(isRelative)
        .map((entry) => sourceOf(resolve(file.path, entry.specifier))),
    ]),
  );
  const found: string[] = [];
  const done = new Set<string>();
  const visit = (path: string, trail: readonly string[]): void => {
    const at = trail.indexOf(path);
    if (at >= 0) found.push([...trail.slice(at), path].join(" → "));
    if (at >= 0 || done.has(path)) return;
    for (const next of graph.get(path) ?? []) visit(next, [...trail, path]);
    done.add(path);
  };
  for (const path of graph.keys()) visit(path, []);
  return found;
}

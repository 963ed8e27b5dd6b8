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
const LIKE_A_USER = new Set(["redlock", "pausing"]);
/** Folders that will become separate packages. They may import the rest of the library only via `WAYS_IN`. */
const OUTSIDE = new Set(["interop", "recipes", "integrations", "testing", "admin", "period-marker"]);
const WAYS_IN = new Set(["index.ts", "internal.ts"]);
/** Packages that each integration may import. All are optional peer dependencies. */
const FRAMEWORKS: Readonly<Record<string, readonly string[]>> = {
  bullmq: ["bullmq"],
  express: ["express"],
  fastify: ["fastify", "fastify-plugin"],
  hono: ["hono", "hono/factory"],
  nestjs: ["@nestjs/common", "@nestjs/core", "reflect-metadata"],
  "node-cron": ["node-cron"],
  otel: ["@opentelemetry/api"],
  pg: ["pg"],
  prometheus: ["prom-client"],
};
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
  if (from.startsWith("packages/embedded/src/"))
    return (
      isOwn(from, "packages/embedded/src/", entry) || isBuiltIn(entry) || isEntryPoint(entry, "holdfast", "wasmoon")
    );
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
  if (!isRelative(entry)) return isAllowedPackage(zone, from, entry);

  const to = resolve(from, entry.specifier);
  if (to.startsWith("..")) return false;
  const target = to.includes("/") ? to.slice(0, to.indexOf("/")) : "";
  switch (zone) {
    case "": // index.ts and holdfast.ts put the parts together
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
      if (OUTSIDE.has(zone))
        return (
          target === zone || WAYS_IN.has(to) || OUTSIDE.has(target) || (target === "generated" && zone !== "testing")
        );
      if (target === zone || target === "core") return true;
      if (LIKE_A_USER.has(zone) && (target === "" || !NOT_A_KIND.has(target))) return true;
      return target === "generated" || (BUILT_ON[zone]?.includes(target) ?? false);
  }
}

/** Whether an integration imports its own framework, as `integrations/nestjs/` imports `@nestjs/common`. */
function isFramework(from: string, { specifier }: Import): boolean {
  const integration = from.split("/")[1] ?? "";
  return (FRAMEWORKS[integration] ?? []).includes(specifier);
}

function isAllowedPackage(zone: string, from: string, entry: Import): boolean {
  if (zone === "generated") return false;
  if (zone === "testing" && entry.specifier === "vitest") return true;
  if (zone === "stores" && CLIENTS.has(entry.specifier)) return entry.isTypeOnly;
  if (zone === "integrations") return isBuiltIn(entry) || isFramework(from, entry);
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

function isEntryPoint({ specifier }: Import, ...packages: readonly string[]): boolean {
  return packages.some((name) => specifier === name) || specifier === "holdfast/testing";
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

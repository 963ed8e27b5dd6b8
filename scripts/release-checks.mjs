// @ts-check
/** The checks that a packed package must pass before it is published. */

/** @typedef {{ name: string, version: string, dependencies?: Record<string, string>, [field: string]: unknown }} Manifest */

const CODE = /\.[cm]?js$/;
const TYPES = /\.d\.[cm]?ts$/;

/**
 * The paths that an entry of `exports` can lead to.
 *
 * @param {unknown} target
 * @returns {string[]}
 */
function pathsIn(target) {
  if (typeof target === "string") return [target];
  return Object.values(target ?? {}).flatMap(pathsIn);
}

/**
 * The code files that a package offers: its exports and its commands.
 *
 * @param {{ main?: string, exports?: unknown, bin?: Record<string, string> }} manifest
 * @returns {string[]}
 */
export function entryFiles({ main, exports, bin = {} }) {
  const paths = [...(main === undefined ? [] : [main]), ...pathsIn(exports), ...Object.values(bin)];
  return [...new Set(paths.filter((path) => CODE.test(path)))];
}

/**
 * Lists the problems of a packed package.
 *
 * @param {ReadonlyMap<string, string>} files  the text of each file, by its path in the package
 * @param {string} version  the version of all packages of the release
 * @returns {string[]}
 */
export function complaintsAbout(files, version) {
  const manifest = JSON.parse(files.get("package.json") ?? "{}");
  /** @type {string[]} */
  const wrong = [];
  for (const file of ["README.md", "LICENSE", "package.json"]) if (!files.has(file)) wrong.push(`${file} is missing`);
  for (const field of ["name", "version", "description", "keywords", "license", "engines", "publishConfig"])
    if (manifest[field] === undefined) wrong.push(`package.json has no ${field}`);
  if (manifest.devDependencies !== undefined) wrong.push("package.json has devDependencies");
  for (const kind of ["dependencies", "peerDependencies"])
    for (const [name, range] of Object.entries(manifest[kind] ?? {}))
      if (/^(holdfast$|@holdfast\/)/.test(name) && range !== version)
        wrong.push(`${kind} has ${name} ${range}, not the version of this release, ${version}`);
  for (const [entry, target] of Object.entries(manifest.exports ?? {})) {
    const paths = pathsIn(target);
    for (const path of paths)
      if (!files.has(path.replace(/^\.\//, ""))) wrong.push(`${entry} names ${path}, which is missing`);
    if (paths.some((path) => CODE.test(path)) && !paths.some((path) => TYPES.test(path)))
      wrong.push(`${entry} has no types`);
  }
  // For tools that do not read `exports`, such as TypeScript's node10.
  if (manifest.exports?.["."] !== undefined)
    for (const field of ["main", "types"])
      if (manifest[field] === undefined) wrong.push(`package.json has no ${field}`);
  for (const path of [
    manifest.main,
    manifest.types,
    ...[manifest.man ?? []].flat(),
    ...Object.values(manifest.bin ?? {}),
  ])
    if (path !== undefined && !files.has(path.replace(/^\.\//, ""))) wrong.push(`${path} is missing`);
  for (const [path, text] of files) {
    if (/\.tsbuildinfo$|\.map$|(^|\/)src\//.test(path)) wrong.push(`${path} does not belong in a package`);
    if (/^\/\/# sourceMappingURL=/m.test(text) && /\.(?:[cm]?js|d\.ts)$/.test(path))
      wrong.push(`${path} names a source map, which is not published`);
  }
  return wrong;
}

/**
 * Explains why packages of these versions cannot be one release. Empty if they can.
 *
 * @param {readonly Manifest[]} manifests
 * @returns {string[]}
 */
export function versionsApart(manifests) {
  if (new Set(manifests.map(({ version }) => version)).size === 1) return [];
  return manifests.map(({ name, version }) => `${name} has ${version}`);
}

const ADDRESSES = ["repository", "homepage", "bugs"];

/**
 * Lists missing public addresses. Provenance needs the repository.
 *
 * @param {readonly Manifest[]} manifests
 * @returns {string[]}
 */
export function missingAddresses(manifests) {
  return manifests.flatMap((manifest) => {
    const missing = ADDRESSES.filter((field) => manifest[field] === undefined);
    return missing.length === 0 ? [] : [`${manifest.name} has no ${missing.join(", no ")}`];
  });
}

/**
 * Sorts the packages so that each comes after its dependencies.
 *
 * @template {{ manifest: Manifest }} Package
 * @param {readonly Package[]} packages
 * @returns {Package[]}
 */
export function inOrder(packages) {
  /** @type {Package[]} */
  const done = [];
  /** @param {Package} one */
  const add = (one) => {
    if (done.includes(one)) return;
    const needed = {
      ...one.manifest.dependencies,
      .../** @type {object | undefined} */ (one.manifest.peerDependencies),
    };
    for (const other of packages) if (other !== one && other.manifest.name in needed) add(other);
    done.push(one);
  };
  for (const one of packages) add(one);
  return done;
}

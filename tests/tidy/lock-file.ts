interface LockFile {
  readonly packages: Readonly<Record<string, { readonly optionalDependencies?: Readonly<Record<string, string>> }>>;
}

/**
 * Binaries for other platforms that the lock file does not list. `npm ci` refuses such a lock file, and npm writes one
 * if the registry in use lacks a platform.
 */
export function missingPlatforms(lockFile: string): string[] {
  const { packages }: LockFile = JSON.parse(lockFile);
  const present = new Set(Object.keys(packages).map((path) => path.slice(path.lastIndexOf("node_modules/") + 13)));
  return Object.entries(packages).flatMap(([path, { optionalDependencies = {} }]) =>
    Object.keys(optionalDependencies)
      .filter((name) => !present.has(name))
      .map((name) => `${path}: ${name}`),
  );
}

/**
 * Maps names of the Web Locks API to names of read-write locks.
 *
 * Almost all names stay the same. The API also allows the empty name and lone surrogates, which a key cannot contain.
 * The API forbids names that begin with `-`, so Holdfast maps the names that a key cannot contain to such names.
 */

/** Returns the name of the read-write lock for a name of the API. Different names have different locks. */
export function lockNameOf(name: string): string {
  if (name !== "" && !/\p{Surrogate}/u.test(name)) return name;
  // JSON escapes lone surrogates and doubles each backslash, so no two names have the same result.
  return `-${JSON.stringify(name).slice(1, -1)}`;
}

/** Returns the API name for the name of a read-write lock. A name that no request can use is returned unchanged. */
export function requestNameOf(lockName: string): string {
  if (!lockName.startsWith("-")) return lockName;
  try {
    const name: unknown = JSON.parse(`"${lockName.slice(1)}"`);
    return typeof name === "string" && lockNameOf(name) === lockName ? name : lockName;
  } catch {
    return lockName;
  }
}

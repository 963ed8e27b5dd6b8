/** The lock that a request is about, by the hash tag of its keys; empty if it is about none. */
export function lockOf({ keys }: { readonly keys: readonly string[] }): string {
  return /\{(.*)\}/.exec(keys[0] ?? "")?.[1] ?? "";
}

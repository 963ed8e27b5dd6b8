/** The lock of a request, from the hash tag of its keys; empty if there is none. */
export function lockOf({ keys }: { readonly keys: readonly string[] }): string {
  return /\{(.*)\}/.exec(keys[0] ?? "")?.[1] ?? "";
}

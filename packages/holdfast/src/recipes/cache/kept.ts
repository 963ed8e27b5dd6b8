/** What other processes have kept or told of an entry, as the callers here get it. */
import { decodeFailure } from "../failure.js";
import { CacheLoadError } from "./errors.js";
import type { LoadPlace } from "./load.js";

/** The value in that text; undefined if this version of the program cannot read it. */
export function valueIn<Value>(
  { options }: LoadPlace<Value>,
  text: string | undefined,
): { readonly value: Value } | undefined {
  if (text === undefined) return undefined;
  try {
    // What is kept under this name is of this type, as far as all who share it agree.
    return { value: options.codec.decode(text) as Value };
  } catch {
    return undefined;
  }
}

/** The error in that text, which `Load` has written, in a script of ours. */
export function failureIn({ protocol }: LoadPlace<never>, text: string): CacheLoadError {
  return new CacheLoadError(protocol.name, decodeFailure(text));
}

/** Decodes values and errors from other processes. */
import { decodeFailure } from "../failure.js";
import { CacheLoadError } from "./errors.js";
import type { LoadPlace } from "./load.js";

/** Decodes a value. Returns undefined if there is no text or if this version of the program cannot decode it. */
export function valueIn<Value>(
  { options }: LoadPlace<Value>,
  text: string | undefined,
): { readonly value: Value } | undefined {
  if (text === undefined) return undefined;
  try {
    // The cast relies on all users of the name agreeing on the type of its values.
    return { value: options.codec.decode(text) as Value };
  } catch {
    return undefined;
  }
}

/** Decodes an error that `Load.fail` published. */
export function failureIn({ protocol }: LoadPlace<never>, text: string): CacheLoadError {
  return new CacheLoadError(protocol.name, decodeFailure(text));
}

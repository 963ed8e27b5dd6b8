/** Encodes errors for storage on the server, where callers in other processes read them. */
import { jsonCodec } from "./codec.js";

const TEXT_MAX = 500;

/** An error that was stored on the server. */
export interface KeptFailure {
  /**
   * Name of the error, such as `TypeError`, at most 500 characters. For a thrown value that is not an error, its type.
   */
  readonly name: string;
  /** Message of the error, at most 500 characters. */
  readonly message: string;
  /** The error's own enumerable properties, such as a code. Empty if they are too large or cannot be encoded. */
  readonly data: Readonly<Record<string, unknown>>;
}

/**
 * Returns an error as text. Name and message are always included; the properties are left out if they do not fit.
 * Always uses `jsonCodec`, because the user's codec is made for values and may not be able to encode an error.
 *
 * @param bytesMax  maximum size of the text with properties, in bytes
 */
export function encodeFailure(error: unknown, bytesMax: number): string {
  const { name, message } = wordsOf(error);
  const short: KeptFailure = { name: name.slice(0, TEXT_MAX), message: message.slice(0, TEXT_MAX), data: {} };
  if (typeof error !== "object" || error === null) return jsonCodec.encode(short);
  try {
    const text = jsonCodec.encode({ ...short, data: { ...error } });
    if (Buffer.byteLength(text) <= bytesMax) return text;
  } catch {
    // The properties cannot be encoded: leave them out.
  }
  return jsonCodec.encode(short);
}

/** Returns the error that `encodeFailure` stored. */
export function decodeFailure(text: string): KeptFailure {
  return jsonCodec.decode(text) as KeptFailure;
}

/** Returns the name and message of any thrown value. Never throws, although reading that value can. */
export function wordsOf(error: unknown): { readonly name: string; readonly message: string } {
  try {
    if (error instanceof Error) return { name: String(error.name), message: String(error.message) };
    return { name: typeof error, message: String(error) };
  } catch {
    return { name: typeof error, message: "it cannot be shown as text" };
  }
}

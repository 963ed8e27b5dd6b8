/** An error as it is kept on the server, for callers in other processes. */
import { jsonCodec } from "./codec.js";

const TEXT_MAX = 500;

/** An error as it is kept. */
export interface KeptFailure {
  readonly name: string;
  readonly message: string;
  /** Its own enumerable properties, such as a code, as far as they could be kept. */
  readonly data: Readonly<Record<string, unknown>>;
}

/**
 * An error as text. What does not fit is left out, and its name and message are always there. By no codec of the user's: that is for
 * values, and may have no words for an error.
 */
export function encodeFailure(error: unknown, bytesMax: number): string {
  const { name, message } = wordsOf(error);
  const short: KeptFailure = { name: name.slice(0, TEXT_MAX), message: message.slice(0, TEXT_MAX), data: {} };
  if (typeof error !== "object" || error === null) return jsonCodec.encode(short);
  try {
    const text = jsonCodec.encode({ ...short, data: { ...error } });
    if (Buffer.byteLength(text) <= bytesMax) return text;
  } catch {
    // As below.
  }
  return jsonCodec.encode(short);
}

/** What `encodeFailure` has made text of. */
export function decodeFailure(text: string): KeptFailure {
  return jsonCodec.decode(text) as KeptFailure;
}

/** Name and message of whatever was thrown. Never throws itself, since anything can be thrown. */
export function wordsOf(error: unknown): { readonly name: string; readonly message: string } {
  try {
    if (error instanceof Error) return { name: String(error.name), message: String(error.message) };
    return { name: typeof error, message: String(error) };
  } catch {
    return { name: typeof error, message: "it cannot be put into words" };
  }
}

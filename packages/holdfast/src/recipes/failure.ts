/** An error as it is kept on the server, for callers in other processes. */
import type { Codec } from "./codec.js";

const TEXT_MAX = 500;

/** An error as it is kept. */
export interface KeptFailure {
  readonly name: string;
  readonly message: string;
  /** Its own enumerable properties, such as a code, as far as they could be kept. */
  readonly data: Readonly<Record<string, unknown>>;
}

/** An error as text. What does not fit is left out, and its name and message are always there. */
export function encodeFailure(error: unknown, codec: Codec, bytesMax: number): string {
  const { name, message } = wordsOf(error);
  const short: KeptFailure = { name: name.slice(0, TEXT_MAX), message: message.slice(0, TEXT_MAX), data: {} };
  if (typeof error !== "object" || error === null) return codec.encode(short);
  try {
    const text = codec.encode({ ...short, data: { ...error } });
    if (Buffer.byteLength(text) <= bytesMax) return text;
  } catch {
    // As below.
  }
  return codec.encode(short);
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

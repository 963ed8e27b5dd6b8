/**
 * Returns the label value for an error: its code, or its name if it has no code. Prefers the code because many errors
 * share a name. Never returns the message. For a thrown value that is not an Error, returns its type.
 */
export function errorTypeOf(error: unknown): string {
  if (!(error instanceof Error)) return typeof error;
  return "code" in error && typeof error.code === "string" ? error.code : error.name;
}

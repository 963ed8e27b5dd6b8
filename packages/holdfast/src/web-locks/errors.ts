/** The errors of the Web Locks specification. */

/** The reason of the loss, as the former holders of a stolen lock get it. */
export const STOLEN = "a request with steal took the lock";

/** Creates a DOMException. @param cause  the error behind it */
export function domException(message: string, name: "AbortError" | "NotSupportedError", cause?: unknown): DOMException {
  const error = new DOMException(message, name);
  // Set like this because the types of Node 20 have no constructor that takes a cause.
  if (cause !== undefined) Object.defineProperty(error, "cause", { value: cause, configurable: true, writable: true });
  return error;
}

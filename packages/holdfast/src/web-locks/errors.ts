/** The errors of the Web Locks specification. */
import { show } from "../core/keys.js";

/** The reason reported to the former holders of a stolen lock. */
export const STOLEN = "a steal request took the lock";

/** The error for a request that stole the lock and lost it before its callback began. */
export function lostBeforeUse(lockName: string): DOMException {
  const message = `${show(lockName)} was stolen for this request, but the lease ended before the callback started.`;
  return domException(message, "AbortError");
}

/** Creates a DOMException. @param cause  the error behind it */
export function domException(message: string, name: "AbortError" | "NotSupportedError", cause?: unknown): DOMException {
  const error = new DOMException(message, name);
  // The cause is set here because the Node 20 types have no constructor that takes a cause.
  if (cause !== undefined) Object.defineProperty(error, "cause", { value: cause, configurable: true, writable: true });
  return error;
}

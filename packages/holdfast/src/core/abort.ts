/**
 * Abort signals of callers: what is accepted as one, and one listener for all who wait on it.
 *
 * Node warns of a leak when a signal has more than ten listeners, and callers often share one signal.
 */

/** What a caller may pass as `signal`; those of another realm or of a polyfill are no instances of this realm's class. */
export function isAbortSignal(value: unknown): value is AbortSignal {
  if (value instanceof AbortSignal) return true;
  if (typeof value !== "object" || value === null) return false;
  const { aborted, addEventListener } = value as Partial<AbortSignal>;
  return typeof aborted === "boolean" && typeof addEventListener === "function";
}

const natives = new WeakMap<AbortSignal, AbortSignal>();

/** The signal itself; for one that is no instance of this realm's class, an instance that aborts with it. */
export function nativeSignal(signal: AbortSignal): AbortSignal {
  if (signal instanceof AbortSignal) return signal;
  const known = natives.get(signal);
  if (known !== undefined) return known;
  const foreign: AbortSignal = signal;
  const controller = new AbortController();
  // Polyfills have no reason; then it is an AbortError, as with Node's own.
  const abort = (): void => controller.abort(foreign.reason);
  if (foreign.aborted) abort();
  else foreign.addEventListener("abort", abort, { once: true });
  natives.set(foreign, controller.signal);
  return controller.signal;
}

interface Shared {
  readonly callbacks: Set<() => void>;
  readonly listener: () => void;
}

const shared = new WeakMap<AbortSignal, Shared>();

/**
 * Calls `callback` when the signal aborts; at most once, and not if it has aborted before.
 *
 * @returns ends that; calling it again does nothing
 */
export function onAbort(signal: AbortSignal, callback: () => void): () => void {
  // An object of its own, so that one callback can be given twice.
  const entry = (): void => callback();
  const { callbacks } = shared.get(signal) ?? listenTo(signal);
  callbacks.add(entry);
  return () => {
    // Also while it aborts: who is ended by another callback is not called any more.
    if (!callbacks.delete(entry) || callbacks.size > 0) return;
    const present = shared.get(signal);
    if (present?.callbacks !== callbacks) return;
    shared.delete(signal);
    signal.removeEventListener("abort", present.listener);
  };
}

function listenTo(signal: AbortSignal): Shared {
  const callbacks = new Set<() => void>();
  const listener = (): void => {
    shared.delete(signal);
    for (const callback of callbacks) {
      try {
        callback();
      } catch (error) {
        // As Node does with a listener of its own that throws: the others are called all the same.
        process.nextTick(() => {
          throw error;
        });
      }
    }
  };
  const created = { callbacks, listener };
  shared.set(signal, created);
  signal.addEventListener("abort", listener, { once: true });
  return created;
}

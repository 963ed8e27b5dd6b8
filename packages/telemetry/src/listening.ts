/** Subscribes to several diagnostics channels, and unsubscribes from all of them together. */
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { emitWarning } from "node:process";
import { show } from "holdfast/internal";

/** Message handlers by channel name. */
export type Handlers = Readonly<Record<string, (message: never) => void>>;

/**
 * Subscribes the handlers to their channels, in order.
 *
 * If a handler throws, Holdfast warns once and continues. Without that, the channel would rethrow the error where it
 * cannot be caught, and the process would end.
 *
 * @returns a function that unsubscribes all handlers; calling it again does nothing
 */
export function listen(handlers: Handlers): () => void {
  let hasWarned = false;
  const listeners = Object.entries(handlers).map(([name, handle]) => {
    const listener = (message: unknown): void => {
      try {
        handle(message as never); // each handler takes what its channel publishes
      } catch (error) {
        if (hasWarned) return;
        hasWarned = true;
        emitWarning(
          `Lock telemetry is incomplete, because recording an event failed: ${error instanceof Error ? error.message : show(error)}`,
          { type: "HoldfastWarning", code: "HOLDFAST_TELEMETRY_FAILED" },
        );
      }
    };
    subscribe(name, listener);
    return { name, listener };
  });
  return () => {
    for (const { name, listener } of listeners.splice(0)) unsubscribe(name, listener);
  };
}

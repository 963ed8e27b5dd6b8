/** Listens to channels, and stops listening to all of them at once. */
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { emitWarning } from "node:process";
import { show } from "../../internal.js";

/** What to do with a message of each channel, by its name. */
export type Handlers = Readonly<Record<string, (message: never) => void>>;

/**
 * Begins to listen, in the order of the handlers.
 *
 * What a handler throws would end the process, since a channel throws it where nobody can catch it: it is told in one warning, and
 * no lock hears of it.
 *
 * @returns stops; calling it again does nothing
 */
export function listen(handlers: Handlers): () => void {
  let hasWarned = false;
  const listeners = Object.entries(handlers).map(([name, handle]) => {
    const listener = (message: unknown): void => {
      try {
        handle(message as never); // what that channel publishes
      } catch (error) {
        if (hasWarned) return;
        hasWarned = true;
        emitWarning(
          `What happens to locks is not told in full, since telling it has failed: ${error instanceof Error ? error.message : show(error)}`,
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

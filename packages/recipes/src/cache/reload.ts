import type { Hold } from "holdfast/internal";
import type { Loader } from "./lease.js";
import { Load, type LoadPlace } from "./load.js";

/** Reloads a stale value in the background. Never rejects. */
export async function reload<Value>(place: LoadPlace<Value>, held: Hold, loader: Loader<Value>): Promise<void> {
  const load = new Load(place, held, loader);
  const outcome = await load.outcome;
  if (outcome.ok) {
    await load.keep(outcome.value, outcome.isNegative);
    return;
  }
  await load.fail(outcome.error);
  const { name } = place.protocol;
  try {
    // `onReloadError` may be an async function, although its type does not say so.
    await (place.options.onReloadError(outcome.error, name.slice(name.indexOf("/") + 1)) as unknown);
  } catch {
    // No caller waits, so there is no one to report this to.
  }
}

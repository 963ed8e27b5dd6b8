import type { Hold } from "../../internal.js";
import type { Loader } from "./lease.js";
import { Load, type LoadPlace } from "./load.js";

/** Loads anew in the background what has become stale: nobody waits for it. Never rejects. */
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
    // It may be an async function, which its type does not say.
    await (place.options.onReloadError(outcome.error, name.slice(name.indexOf("/") + 1)) as unknown);
  } catch {
    // There is nobody to tell.
  }
}

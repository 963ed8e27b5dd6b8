import type { Adapter } from "../adapters/adapter.js";
import { yardstickOf } from "../adapters/all.js";
import { programOf } from "../adapters/foreign.js";
import type { Conditions, Entry, Prepared } from "./entry.js";

/**
 * An entry for each adapter, beside the raw lock on the same client.
 *
 * @param absent     says why one takes no part
 * @param isForeign  whether programs in other languages take part, which carry out only some orders
 */
export function entriesOf(
  adapters: readonly Adapter[],
  prepare: (adapter: Adapter, conditions: Conditions) => Promise<Prepared>,
  absent: (adapter: Adapter) => string | undefined = () => undefined,
  isForeign = false,
): readonly Entry[] {
  return adapters.map((adapter) => {
    const reason = absent(adapter) ?? (adapter.isForeign === true ? withoutProgram(adapter, isForeign) : undefined);
    const yardstick = yardstickOf(adapter);
    return {
      name: adapter.name,
      role: adapter.role,
      ...(adapter.role === "raw" ? {} : { yardstick: yardstick.name }),
      prepare: reason === undefined ? (conditions) => prepare(adapter, conditions) : { absent: reason },
    };
  });
}

/** Where callers wait, the client matters little: one entry of ours on each fairness, and one raw lock. */
export function onePerWayToWait({ role, client, onlyFree }: Adapter): string | undefined {
  if (onlyFree !== undefined) return onlyFree;
  return role !== "peer" && client !== "ioredis"
    ? "measured only on ioredis, because the client matters little while callers wait"
    : undefined;
}

/** Where only free locks are acquired, fairness changes nothing. */
export function withoutFairness({ name }: Adapter): string | undefined {
  return name === "holdfast/strict" ? "the same as holdfast on a free lock" : undefined;
}

function withoutProgram(adapter: Adapter, isForeign: boolean): string | undefined {
  if (!isForeign) return "a program in another language, measured only on the hot key and on free locks";
  const found = programOf(adapter);
  return "missing" in found ? found.missing : undefined;
}

import type { Adapter } from "../adapters/adapter.js";
import { yardstickOf } from "../adapters/all.js";
import { programOf } from "../adapters/foreign.js";
import type { Conditions, Entry, Prepared } from "./entry.js";

/**
 * An entry for each adapter, with the raw lock on the same client as its yardstick.
 *
 * @param absent     returns the reason why an adapter is not measured
 * @param isForeign  whether programs in other languages, which support only some orders, are measured
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

/** While callers wait, the client matters little, so only ioredis is measured: one entry per fairness, and one raw lock. */
export function onePerWayToWait({ role, client, onlyFree }: Adapter): string | undefined {
  if (onlyFree !== undefined) return onlyFree;
  return role !== "peer" && client !== "ioredis"
    ? "measured only on ioredis, because the client matters little while callers wait"
    : undefined;
}

/** With free locks, fairness makes no difference. */
export function withoutFairness({ name }: Adapter): string | undefined {
  return name === "holdfast/strict" ? "the same as holdfast on a free lock" : undefined;
}

function withoutProgram(adapter: Adapter, isForeign: boolean): string | undefined {
  if (!isForeign) return "a program in another language, measured only on the hot key and on free locks";
  const found = programOf(adapter);
  return "missing" in found ? found.missing : undefined;
}

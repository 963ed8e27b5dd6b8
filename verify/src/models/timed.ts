import type { Timed } from "../checker/index.js";
import type { Operation } from "../history/records.js";

/** Operations as the checker wants them: one of unknown outcome never returns, whatever its caller saw. */
export function timed(operations: readonly Operation[]): Timed<Operation>[] {
  return operations.map((operation) => {
    const value = operation.outcome === "info" ? { ...operation, returnMs: Number.POSITIVE_INFINITY } : operation;
    return { callMs: value.callMs, returnMs: value.returnMs, value };
  });
}

/** The answer to a verb that a model does not know. */
export function unknownVerb(model: string, { verb, id }: Operation): never {
  throw new TypeError(`The model "${model}" has no step for "${verb}" (operation ${id})`);
}

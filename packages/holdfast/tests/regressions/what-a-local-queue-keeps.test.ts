/** A lock name that was used once may cost memory for its name, but not for its lease. */
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { embedded } from "@holdfast/embedded";
import { expect, test } from "vitest";
import { createHoldfast } from "../../src/index.js";
import { until } from "../../src/testing/delays.js";

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;

test("listeners of a released lease are garbage-collected although the local queue remains", async () => {
  await using holdfast = createHoldfast({ store: embedded() });
  const listeners: WeakRef<object>[] = [];
  for (let i = 0; i < 20; i += 1) {
    await holdfast.mutex(`job ${i}`).run(({ signal }) => {
      const listener = (): void => {};
      signal.addEventListener("abort", listener);
      listeners.push(new WeakRef(listener));
    });
  }
  const kept = (): number => listeners.filter((listener) => listener.deref() !== undefined).length;
  // The last listeners may still be on the stack.
  await until(async () => {
    collectGarbage();
    return kept() <= 2;
  }, "the listeners to be collected");
  expect(kept()).toBeLessThanOrEqual(2);
});

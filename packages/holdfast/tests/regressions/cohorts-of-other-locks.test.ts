/** Which callers share a claim is told by a text made of three; no choice of the three makes the text of another lock. */
import { embedded } from "@holdfast/embedded";
import { expect, test } from "vitest";
import { createHoldfast } from "../../src/index.js";

test("a label that ends as another lock's key begins does not make two locks one", async () => {
  await using holdfast = createHoldfast({ store: embedded() });
  const one = holdfast.mutex("one", { key: "b c" });
  const other = holdfast.mutex("other", { key: "c" });
  const held = await one.acquire();
  const waiting = one.acquire({ label: "a", waitMs: 300 }).catch((error: unknown) => error);
  const lease = await other.acquire({ label: "a b", waitMs: 1_000 });
  expect((await other.inspect()).holders).toMatchObject([{ owner: lease.owner }]);
  await lease.release();
  await held.release();
  await waiting;
});

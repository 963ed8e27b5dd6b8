import { embedded, Keyspace } from "@holdfast/embedded";
import { expect, test } from "vitest";
import { createHoldfast } from "../../src/index.js";

test("a caller that aborts its arrival and arrives again does not pass together with its aborted arrival", async () => {
  const holdfast = createHoldfast({ store: embedded({ keyspace: new Keyspace() }) });
  const barrier = holdfast.barrier("alone", { parties: 2 });
  const controller = new AbortController();
  const first = barrier.arrive({ waitMs: Infinity, signal: controller.signal });
  first.catch(() => {});
  while ((await barrier.inspect()).arrived.length === 0) await new Promise((resolve) => setTimeout(resolve, 5));
  controller.abort(new Error("changed my mind"));
  await expect(first).rejects.toThrow("changed my mind");
  await expect(barrier.arrive({ waitMs: 300 })).rejects.toMatchObject({ code: "ERR_LOCK_BROKEN_BARRIER" });
  await holdfast.close();
});

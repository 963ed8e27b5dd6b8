/** A request presumed lost may arrive long after its claim gave up the mutex to wait on a condition. */
import { embedded } from "@holdfast/embedded";
import { expect, test } from "vitest";
import { StoreError } from "../../src/core/errors.js";
import type { Store } from "../../src/core/store.js";
import { createHoldfast } from "../../src/holdfast.js";
import { until } from "../../src/testing/delays.js";

test("a mutex acquired by a late request while its claim waits for a signal is released", async () => {
  const store = embedded();
  let late: (() => Promise<unknown>) | undefined;
  const losing: Store = {
    kind: store.kind,
    async run(script, ...call) {
      if (script.name !== "mutex/acquire" || late !== undefined) return store.run(script, ...call);
      late = () => store.run(script, ...call);
      throw new StoreError("m", { mayHaveRun: true, transient: true, cause: new Error("connection lost") });
    },
    inbox: (...call) => store.inbox(...call),
    onReconnect: (listener) => store.onReconnect(listener),
    close: () => store.close(),
  };
  const holdfast = createHoldfast({ store: losing });
  const mutex = holdfast.mutex("m");
  const condition = mutex.condition("c");
  const aborting = new AbortController();
  const waiting = condition.wait(await mutex.acquire(), { waitMs: Infinity, signal: aborting.signal });
  await until(async () => (await condition.inspect()).waiterCount === 1, "the wait");

  await late?.();
  await until(async () => (await mutex.inspect()).holders.length === 0, "the mutex to be free");
  aborting.abort(new Error("enough"));
  await expect(waiting).rejects.toThrow("enough");
  await holdfast.close();
});

test("a mutex acquired by a late request after a wait that never began is released", async () => {
  const store = embedded();
  let late: (() => Promise<unknown>) | undefined;
  const losing: Store = {
    kind: store.kind,
    async run(script, ...call) {
      const isFirst = script.name === "mutex/acquire" && late === undefined;
      if (!isFirst && script.name !== "condition/wait") return store.run(script, ...call);
      late ??= () => store.run(script, ...call);
      throw new StoreError("m", { mayHaveRun: true, transient: true, cause: new Error("connection lost") });
    },
    inbox: (...call) => store.inbox(...call),
    onReconnect: (listener) => store.onReconnect(listener),
    close: () => store.close(),
  };
  const holdfast = createHoldfast({ store: losing });
  const mutex = holdfast.mutex("m");
  const aborting = new AbortController();
  const waiting = mutex.condition("c").wait(await mutex.acquire(), { waitMs: Infinity, signal: aborting.signal });
  aborting.abort(new Error("enough"));
  await expect(waiting).rejects.toThrow("enough");
  await until(async () => (await mutex.inspect()).holders.length === 0, "the mutex to be given back");

  await late?.();
  await until(async () => (await mutex.inspect()).holders.length === 0, "the mutex to be free");
  await holdfast.close();
});

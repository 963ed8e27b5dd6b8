/**
 * An arrival that was given up before it reached the server belongs to no generation, and must not report one as
 * broken.
 */
import { embedded, Keyspace } from "@holdfast/embedded";
import { expect, test } from "vitest";
import { BrokenBarrierError, WaitTimeoutError } from "../../src/core/errors.js";
import type { Store } from "../../src/core/store.js";
import { createHoldfast } from "../../src/holdfast.js";
import { until } from "../../src/testing/delays.js";

test("an arrival that is given up before it reaches the server does not report a broken barrier", async () => {
  const keyspace = new Keyspace();
  const store = embedded({ keyspace });
  let hasLeft = (): void => {};
  const left = new Promise<void>((resolve) => {
    hasLeft = resolve;
  });
  let hasAnswered = (): void => {};
  const answered = new Promise<void>((resolve) => {
    hasAnswered = resolve;
  });
  // Holds the request that may wait until after the leave request, and completes it before the leave request returns.
  const overtaking: Store = {
    kind: store.kind,
    async run(script, keys, args, timeoutMs) {
      const mayWait = script.name === "barrier/arrive" && args[script.args.indexOf("enqueue")] === 1;
      if (mayWait) await left;
      const reply = await store.run(script, keys, args, timeoutMs);
      if (mayWait) hasAnswered();
      if (script.name !== "barrier/leave") return reply;
      hasLeft();
      await answered;
      await new Promise(setImmediate);
      return reply;
    },
    inbox: (...call) => store.inbox(...call),
    onReconnect: (listener) => store.onReconnect(listener),
    close: () => store.close(),
  };
  const holdfast = createHoldfast({ store: overtaking });
  const others = createHoldfast({ store: embedded({ keyspace }) });
  const barrier = others.barrier("phase", { parties: 3 });
  const first = barrier.arrive({ waitMs: Infinity });
  await until(async () => (await barrier.inspect()).arrived.length === 1, "the first to arrive");

  const error: unknown = await holdfast
    .barrier("phase", { parties: 3 })
    .arrive({ waitMs: 50 })
    .catch((reason: unknown) => reason);
  expect(error).not.toBeInstanceOf(BrokenBarrierError);
  expect(error).toBeInstanceOf(WaitTimeoutError);
  expect((error as Error).message).toContain("this party has not arrived");
  const second = barrier.arrive({ waitMs: Infinity });
  await until(async () => (await barrier.inspect()).arrived.length === 2, "the second to arrive");
  expect(await barrier.arrive({ waitMs: 0 })).toEqual({ generation: 1, index: 2 });
  expect([await first, await second]).toEqual([
    { generation: 1, index: 0 },
    { generation: 1, index: 1 },
  ]);
  await Promise.all([holdfast.close(), others.close()]);
});

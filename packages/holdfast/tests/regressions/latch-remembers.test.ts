/** A latch keeps what it has counted even if another client uses a shorter keepMs for it. */
import { embedded, Keyspace } from "@holdfast/embedded";
import { expect, test } from "vitest";
import { createHoldfast, createHoldfastOn } from "../../src/holdfast.js";
import type { Store } from "../../src/index.js";
import { ManualRuntime } from "../unit/manual-runtime.js";

test.each([
  { name: "count-down at zero", brief: "countDown" },
  { name: "count", brief: "trySetCount" },
] as const)(
  "a $name with a short keepMs forgets no count-down that another client keeps for a day",
  async ({ brief }) => {
    const runtime = new ManualRuntime();
    const keyspace = new Keyspace({ clock: { nowUs: () => Math.floor(runtime.wallMs() * 1_000) } });
    const inner = embedded({ keyspace });
    const copies: (() => Promise<unknown>)[] = [];
    const store: Store = {
      kind: inner.kind,
      run(script, keys, args, timeoutMs) {
        const send = (): Promise<unknown> => inner.run(script, keys, args, timeoutMs);
        if (script.name === "count-down-latch/count-down") copies.push(send);
        return send() as ReturnType<Store["run"]>;
      },
      inbox: (...args) => inner.inbox(...args),
      onReconnect: (listener) => inner.onReconnect(listener),
      close: () => inner.close(),
    };
    const holdfast = createHoldfastOn(runtime, { store });
    const latch = holdfast.countDownLatch("l");
    await latch.countDown();

    const other = createHoldfast({ store: embedded({ keyspace }) });
    const briefly = other.countDownLatch("l", { keepMs: 1_000 });
    if (brief === "countDown") await briefly.countDown();
    else expect(await briefly.trySetCount(1)).toBe(true);
    await runtime.advance(2_000);

    expect(await latch.trySetCount(3)).toBe(true);
    await copies[0]?.();
    expect(await latch.count()).toBe(3);
    await Promise.all([holdfast.close(), other.close()]);
  },
);

/** A late copy of an arrival that did not want to wait for missing parties must not count. */
import { embedded, Keyspace } from "@holdfast/embedded";
import { expect, test } from "vitest";
import { createHoldfast, type Store, WaitTimeoutError } from "../../src/index.js";

test("a late copy of an arrival with waitMs 0 does not complete the barrier", async () => {
  const store = embedded({ keyspace: new Keyspace() });
  const copies: (() => Promise<unknown>)[] = [];
  const run: Store["run"] = (script, keys, args, timeoutMs) => {
    if (script.name === "barrier/arrive") copies.push(() => store.run(script, keys, args, timeoutMs));
    return store.run(script, keys, args, timeoutMs);
  };
  const watched: Store = {
    kind: "watched",
    run,
    inbox: (...args) => store.inbox(...args),
    onReconnect: (listener) => store.onReconnect(listener),
    close: () => store.close(),
  };
  const [first, second] = [createHoldfast({ store }), createHoldfast({ store: watched })];
  const barriers = [first.barrier("b", { parties: 2 }), second.barrier("b", { parties: 2 })] as const;
  await expect(barriers[1].arrive({ waitMs: 0 })).rejects.toThrow(WaitTimeoutError);

  const waiting = barriers[0].arrive();
  while ((await barriers[0].inspect()).arrived.length === 0) await new Promise((resume) => setTimeout(resume, 1));
  for (const copy of copies) await copy();
  expect((await barriers[0].inspect()).arrived).toHaveLength(1);

  expect(await barriers[1].arrive({ waitMs: 0 })).toMatchObject({ generation: 1 });
  expect(await waiting).toMatchObject({ generation: 1 });
  await Promise.all([first.close(), second.close()]);
});

/** A copy of an arrival that got the reply "broken" must not count if it arrives after the reset. */
import { embedded, Keyspace } from "@holdfast/embedded";
import { expect, test } from "vitest";
import { BrokenBarrierError, createHoldfast, type Store } from "../../src/index.js";

test("a late copy of an arrival that found the barrier broken does not arrive in the next generation", async () => {
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
  // After one wait the client is subscribed, so later arrivals need no request before the one that may wait.
  const passing = barriers[1].arrive();
  while ((await barriers[0].inspect()).arrived.length === 0) await new Promise((resume) => setTimeout(resume, 1));
  await Promise.all([passing, barriers[0].arrive()]);
  copies.length = 0;
  const abort = new AbortController();
  const waiting = barriers[0].arrive({ signal: abort.signal });
  while ((await barriers[0].inspect()).arrived.length === 0) await new Promise((resume) => setTimeout(resume, 1));
  abort.abort();
  await expect(waiting).rejects.toThrow();
  await expect(barriers[1].arrive()).rejects.toThrow(BrokenBarrierError);
  await barriers[0].reset();
  for (const copy of copies) await copy();
  expect((await barriers[0].inspect()).arrived).toEqual([]);
  await Promise.all([first.close(), second.close()]);
});

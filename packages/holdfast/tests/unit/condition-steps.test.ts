import { expect, test } from "vitest";
import { waitProtocol } from "../../src/condition/protocol.js";
import type { Claim, LockProtocol } from "../../src/core/protocol.js";
import type { Reply, Store } from "../../src/core/store.js";
import { ManualRuntime } from "./manual-runtime.js";

const claim: Claim = { owner: "me/1/30000/1", number: 1, leaseMs: 30_000, amount: 1 };

/** A store with scripted replies that records the signal argument of each leave. */
function storeOf(answers: (() => Promise<Reply>)[]): { store: Store; said: (string | number)[] } {
  const said: (string | number)[] = [];
  const store = {
    kind: "scripted",
    run: async (script: { name: string }, _keys: unknown, args: readonly (string | number)[]) => {
      if (script.name === "condition/leave") said.push(args[3] ?? "");
      return (answers.shift() ?? (async () => 2))();
    },
  };
  // The steps use only `run`.
  return { store: store as unknown as Store, said };
}

function stepsOf(store: Store) {
  const place = {
    store,
    mutex: { name: "m" } as LockProtocol,
    lock: "l",
    fence: "f",
    queue: "q",
    handed: "h",
    pause: "p",
    condition: "c",
    inbox: "hf:in:",
  };
  const session = { runtime: new ManualRuntime(), commandReconnects: 0 };
  const held = { owner: "other/1/30000/1", token: 7, grant: { token: 7 } };
  return waitProtocol(session, place, { ...held, validForMs: () => 30_000, undoLateRequests: () => {} });
}

test("a claim that leaves twice, even concurrently, passes its signal on once", async () => {
  const { store, said } = storeOf([async () => [0, -1, 1_000]]);
  const protocol = stepsOf(store);
  await protocol.acquire(claim, true, 1_000);
  await Promise.all([protocol.leave(claim, 1_000), protocol.leave(claim, 1_000)]);
  await protocol.leave(claim, 1_000);
  expect(said).toEqual([1, 2, 2]);
});

test("a reply that arrives after the claim has left does not make its next leave count as the first", async () => {
  let answer = (_reply: Reply): void => {};
  const { store, said } = storeOf([() => new Promise<Reply>((resolve) => (answer = resolve))]);
  const protocol = stepsOf(store);
  const asking = protocol.acquire(claim, true, 1_000);
  await protocol.leave(claim, 1_000);
  answer([0, -1, 1_000]);
  await asking;
  await protocol.leave(claim, 1_000);
  expect(said).toEqual([0, 2]);
});

test("an unanswered leave is resent unchanged", async () => {
  const lost = async (): Promise<Reply> => {
    throw new Error("lost");
  };
  const { store, said } = storeOf([async () => [0, -1, 1_000], lost]);
  const protocol = stepsOf(store);
  await protocol.acquire(claim, true, 1_000);
  await expect(protocol.leave(claim, 1_000)).rejects.toThrow("lost");
  await protocol.leave(claim, 1_000);
  expect(said).toEqual([1, 1]);
});

test("a granted claim passes no signal on when it leaves later", async () => {
  const { store, said } = storeOf([async () => [0, -1, 1_000]]);
  const protocol = stepsOf(store);
  await protocol.acquire(claim, true, 1_000);
  protocol.granted();
  await protocol.leave(claim, 1_000);
  expect(said).toEqual([2]);
});

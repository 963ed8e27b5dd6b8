/** Found by the exhaustive search of small worlds (verify/src/search, world W4). */
import { embedded, Keyspace } from "@holdfast/embedded";
import { expect, test } from "vitest";
import { lockKeys } from "../../src/core/keys.js";
import type { Claim } from "../../src/core/protocol.js";
import { OwnClaim } from "../../src/core/protocol.js";
import { permitsProtocol } from "../../src/permits/protocol.js";

const TIMEOUT_MS = 1_000;

function claimOf(clientId: string, amount: number, number = 1): Claim {
  return new OwnClaim({ clientId, number, leaseMs: 60_000, amount, label: "", handOffMs: undefined });
}

test("a waiter whose process is gone blocks no other waiter, even if its permits are not free", async () => {
  const keyspace = new Keyspace();
  const store = embedded({ keyspace });
  const keys = lockKeys("hf", "semaphore", "a");
  const protocol = permitsProtocol({
    store,
    kind: "semaphore",
    name: "a",
    keys,
    inbox: "in:",
    declared: 2,
    numbered: 0,
  });
  const holder = claimOf("alive", 1);
  const gone = claimOf("gone", 2);
  const next = claimOf("next", 1);
  await store.inbox("in:alive", () => {}, TIMEOUT_MS);
  await store.inbox("in:next", () => {}, TIMEOUT_MS);

  expect((await protocol.acquire(holder, true, TIMEOUT_MS)).outcome).toBe("granted");
  expect((await protocol.acquire(gone, true, TIMEOUT_MS)).outcome).toBe("waiting");
  expect((await protocol.acquire(next, true, TIMEOUT_MS)).outcome).toBe("granted");
  expect((await protocol.inspect(undefined, TIMEOUT_MS)).waiterCount).toBe(0);
});

test("a live waiter that needs more permits than are free is not overtaken", async () => {
  const keyspace = new Keyspace();
  const store = embedded({ keyspace });
  const keys = lockKeys("hf", "semaphore", "a");
  const protocol = permitsProtocol({
    store,
    kind: "semaphore",
    name: "a",
    keys,
    inbox: "in:",
    declared: 2,
    numbered: 0,
  });
  await store.inbox("in:here", () => {}, TIMEOUT_MS);

  expect((await protocol.acquire(claimOf("here", 1), true, TIMEOUT_MS)).outcome).toBe("granted");
  expect((await protocol.acquire(claimOf("here", 2, 2), true, TIMEOUT_MS)).outcome).toBe("waiting");
  expect((await protocol.acquire(claimOf("here", 1, 3), true, TIMEOUT_MS)).outcome).toBe("waiting");
});

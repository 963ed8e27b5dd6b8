/** Requests that only a holder may send, on a server that may no longer know the holder. */
import { beforeEach, expect, test, vi } from "vitest";
import { LeaseLostError } from "../../src/core/errors.js";
import type { Lease } from "../../src/core/lease.js";
import { askAsHolder } from "../../src/core/lease.js";
import { ScriptedLock } from "./scripted-lock.js";

let world: ScriptedLock;
let lease: Lease;
beforeEach(async () => {
  world = new ScriptedLock();
  lease = await world.lock.acquire({ leaseMs: 5_000 });
});

const isRefused = (answer: string): boolean => answer === "refused";

test("an accepted request is sent once and does not extend the lease", async () => {
  const ask = vi.fn(async () => "done");
  expect(await askAsHolder(lease, ask, isRefused)).toBe("done");
  expect(ask).toHaveBeenCalledOnce();
  expect(world.sentOf("extend")).toEqual([]);
});

test("a refused request extends the lease and is sent once more", async () => {
  const ask = vi.fn(async () => "done").mockResolvedValueOnce("refused");
  expect(await askAsHolder(lease, ask, isRefused)).toBe("done");
  expect(ask).toHaveBeenCalledTimes(2);
  expect(world.sentOf("extend")).toHaveLength(1);
});

test("a request refused twice returns the refusal", async () => {
  const ask = vi.fn(async () => "refused");
  expect(await askAsHolder(lease, ask, isRefused)).toBe("refused");
  expect(ask).toHaveBeenCalledTimes(2);
});

test("a refused request is not sent again if the lease is lost", async () => {
  world.answers.extend = async () => "claimed";
  const ask = vi.fn(async () => "refused");
  await expect(askAsHolder(lease, ask, isRefused)).rejects.toBeInstanceOf(LeaseLostError);
  expect(ask).toHaveBeenCalledOnce();
});

/** What only a holder may do, on a server that says that nobody holds. */
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

test("who is not refused has asked once, and begun nothing anew", async () => {
  const ask = vi.fn(async () => "done");
  expect(await askAsHolder(lease, ask, isRefused)).toBe("done");
  expect(ask).toHaveBeenCalledOnce();
  expect(world.sentOf("extend")).toEqual([]);
});

test("who is refused begins the lease anew, and asks once more", async () => {
  const ask = vi.fn(async () => "done").mockResolvedValueOnce("refused");
  expect(await askAsHolder(lease, ask, isRefused)).toBe("done");
  expect(ask).toHaveBeenCalledTimes(2);
  expect(world.sentOf("extend")).toHaveLength(1);
});

test("who is refused again is told so", async () => {
  const ask = vi.fn(async () => "refused");
  expect(await askAsHolder(lease, ask, isRefused)).toBe("refused");
  expect(ask).toHaveBeenCalledTimes(2);
});

test("where the lease is lost it is not asked again", async () => {
  world.answers.extend = async () => "claimed";
  const ask = vi.fn(async () => "refused");
  await expect(askAsHolder(lease, ask, isRefused)).rejects.toBeInstanceOf(LeaseLostError);
  expect(ask).toHaveBeenCalledOnce();
});

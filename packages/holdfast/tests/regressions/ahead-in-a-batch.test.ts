/** A caller that waits in a batch comes before the server's queue, so its timeout must not report waiters ahead. */
import { expect, test } from "vitest";
import { AcquireTimeoutError } from "../../src/core/errors.js";
import { NOBODY, NOW_US, ScriptedLock, watch } from "../unit/scripted-lock.js";

test("a caller whose turn in a batch does not come in time reports no waiters ahead", async () => {
  const world = new ScriptedLock({ takesTurns: true });
  world.answers.acquire = async () => ({ outcome: "waiting", restMs: 30_000, nowUs: NOW_US });
  world.answers.inspect = async () => ({ ...NOBODY, waiterCount: 5 });
  const holding = watch(world.lock.acquire({ waitMs: Infinity }));
  const next = watch(world.lock.acquire({ waitMs: 50 }));
  await world.runtime.advance(5);
  world.store.push(`+${world.lastNumber} 1000 ${NOW_US + 5_000}`);
  await world.runtime.advance(50);
  expect(holding.state).toBe("fulfilled");
  expect(next.error).toBeInstanceOf(AcquireTimeoutError);
  expect(next.error).toMatchObject({ waitersAhead: 0 });
});

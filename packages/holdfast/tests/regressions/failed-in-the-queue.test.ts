/** A waiter in the queue whose next request the server refuses. */
import { expect, test } from "vitest";
import { StoreError } from "../../src/core/errors.js";
import { NOW_US, ScriptedLock, watch } from "../unit/scripted-lock.js";

test("a queued waiter that fails reports that its request may have run", async () => {
  const world = new ScriptedLock();
  let questions = 0;
  world.answers.acquire = () => {
    questions += 1;
    if (questions === 1) return Promise.resolve({ outcome: "waiting", restMs: 100, nowUs: NOW_US });
    const cause = new Error("BUSY");
    return Promise.reject(new StoreError("scripted", { mayHaveRun: false, transient: false, cause }));
  };
  const acquiring = watch(world.lock.acquire());
  await world.runtime.advance(10_000);
  expect(questions).toBe(2);
  expect(acquiring.error).toMatchObject({ code: "ERR_LOCK_STORE", mayHaveRun: true });
});

/** A release called in time whose reply comes after the lease has ended. */
import { expect, test } from "vitest";
import { LeaseLostError } from "../../src/core/errors.js";
import { Answer, lost, ScriptedLock, watch } from "../unit/scripted-lock.js";

const LEASE_MS = 30_000;

/** Calls release in time. The first request gets no reply; the second gets its reply after the lease has ended. */
async function releaseAnsweredLate(second: "claimed" | "unclaimed" | "forgotten"): Promise<ReturnType<typeof watch>> {
  const world = new ScriptedLock();
  const answer = new Answer<typeof second>();
  let calls = 0;
  world.answers.release = () => {
    calls += 1;
    return calls === 1 ? Promise.reject(lost()) : answer.promise;
  };
  const lease = await world.lock.acquire({ renew: false });
  await world.runtime.advance(LEASE_MS - 1_000);
  const released = watch(lease.release());
  await world.runtime.advance(1_500);
  answer.resolve(second);
  await world.runtime.advance(0);
  expect(calls).toBe(2);
  return released;
}

test("a release called in time but answered late succeeds", async () => {
  expect(await releaseAnsweredLate("claimed")).toMatchObject({ state: "fulfilled", value: "released" });
  expect(await releaseAnsweredLate("unclaimed")).toMatchObject({ state: "fulfilled", value: "released" });
});

test("a release answered late rejects if the server no longer knows the lease", async () => {
  const { state, error } = await releaseAnsweredLate("forgotten");
  expect(state).toBe("rejected");
  expect(error).toBeInstanceOf(LeaseLostError);
});

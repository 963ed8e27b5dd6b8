import { expect, test } from "vitest";
import { embedded } from "../../../embedded/src/index.js";
import { createHoldfast, type Lock } from "../../../holdfast/src/index.js";
import { sleep } from "../../../holdfast/src/testing/delays.js";
import type { RunPlan } from "../../src/verbs/run/flags.js";
import { Report } from "../../src/verbs/run/report.js";
import { obtain, type SoughtLock } from "../../src/verbs/run/waiting.js";

// It was reported as a wait, and then as granted after 0 ms.
test("a slow reply to the first request is not reported as a wait", async () => {
  const holdfast = createHoldfast({ store: embedded() });
  const mutex = holdfast.mutex("slow");
  const events: string[] = [];
  const acquire = async (options: object): ReturnType<Lock["acquire"]> => {
    await sleep(500);
    return mutex.acquire(options);
  };
  const lock = { name: mutex.name, inspect: () => mutex.inspect(), acquire };
  const chosen = { kind: "mutex", mode: "exclusive", isForeign: false, lock, slotOf: () => undefined };
  const write = (line: string): void => void events.push(JSON.parse(line).event);
  const streams = { stderr: { write } } as unknown as ConstructorParameters<typeof Report>[0];
  const how = { name: "slow", isJson: true, isQuiet: false, isVerbose: false, statusFd: undefined };
  const plan = { name: "slow", waitMs: 60_000, leaseMs: 30_000, throughPause: false } as RunPlan;
  const sought = { ...chosen, serverNowMs: async () => Date.now() } as unknown as SoughtLock;
  const { lease, hasWaited } = await obtain(sought, plan, new Report(streams, how), new AbortController().signal);
  expect([hasWaited, events]).toEqual([false, []]);
  await lease.release();
  await holdfast.close();
});

import { afterAll, expect, test } from "vitest";
import { embedded } from "../../../embedded/src/index.js";
import { createHoldfast, type Lock, QuorumError } from "../../../holdfast/src/index.js";
import { sleep } from "../../../holdfast/src/testing/delays.js";
import type { RunPlan } from "../../src/verbs/run/flags.js";
import { Report } from "../../src/verbs/run/report.js";
import { type Obtained, obtain, type SoughtLock } from "../../src/verbs/run/waiting.js";

const holdfast = createHoldfast({ store: embedded() });
afterAll(() => holdfast.close());

/** Acquires a free mutex whose replies take that long, and returns the lines that `run` writes meanwhile. */
async function slowly(
  name: string,
  delayMs: number,
  { isJson = true, inspect }: { isJson?: boolean; inspect?: Lock["inspect"] } = {},
): Promise<Obtained & { readonly lines: readonly string[] }> {
  const mutex = holdfast.mutex(name);
  const lines: string[] = [];
  const acquire = async (options: object): ReturnType<Lock["acquire"]> => {
    await sleep(delayMs);
    return mutex.acquire(options);
  };
  const lock = { name, inspect: inspect ?? (() => mutex.inspect()), acquire };
  const chosen = { kind: "mutex", mode: "exclusive", isForeign: false, lock, slotOf: () => undefined };
  const sought = { ...chosen, serverNowMs: async () => Date.now() } as unknown as SoughtLock;
  const streams = { stderr: { write: (line: string) => void lines.push(line), isTTY: true } };
  const how = { name, isJson, isQuiet: false, isVerbose: false, statusFd: undefined };
  const report = new Report(streams as unknown as ConstructorParameters<typeof Report>[0], how);
  const plan = { name, waitMs: 60_000, leaseMs: 30_000, throughPause: false } as RunPlan;
  const obtained = await obtain(sought, plan, report, new AbortController().signal);
  await obtained.lease.release();
  return { ...obtained, lines };
}

// It was reported as a wait, and then as granted after 0 ms.
test("a slow reply to the first request is not reported as a wait", async () => {
  expect(await slowly("slow", 500)).toMatchObject({ hasWaited: false, lines: [] });
});

test("no reply for more than 2 s is a wait, and is reported", async () => {
  const { hasWaited, lines } = await slowly("silent", 3_000);
  expect([hasWaited, lines.map((line) => JSON.parse(line).event)]).toEqual([true, ["waiting"]]);
});

test("a person reads that a Redlock may be held if only some servers reply, not that none does", async () => {
  const answers = (["held", "none"] as const).map((answer, server) => {
    return { server, answer, leaseLeftMs: undefined, error: undefined };
  });
  const unsure = new QuorumError("unsure", { answers, mayHaveRun: false, transient: true });
  const { lines } = await slowly("unsure", 3_000, { isJson: false, inspect: () => Promise.reject(unsure) });
  expect(lines.join("")).toBe("holdfast: waiting for unsure, which may be held: some servers do not reply\n");
});

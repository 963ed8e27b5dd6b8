/** Pauses in the history: a changed end is recorded, and several records of one pause become one entry. */
import { embedded } from "@holdfast/embedded";
import { afterEach, beforeEach, expect, test } from "vitest";
import { appendHistory, extendPause, type HistoryRecorder, readHistory, recordHistory } from "../../src/admin/index.js";
import { channels, type PauseEvent } from "../../src/core/events.js";
import { createHoldfast, type Holdfast } from "../../src/index.js";

const FAR_MS = 8_000_000_000_000;
const NAME = "deploy";

let holdfast: Holdfast;
let recorder: HistoryRecorder;
beforeEach(() => {
  holdfast = createHoldfast({ store: embedded() });
  recorder = recordHistory(holdfast);
});
afterEach(async () => {
  await recorder.stop();
  await holdfast.close();
});

async function told(): Promise<readonly object[]> {
  await recorder.flush();
  const entries = await readHistory(holdfast, { name: NAME });
  return entries
    .map(({ outcome, by, reason, untilAtMs, owner }) => ({ outcome, by, reason, untilAtMs, owner }))
    .toSorted((one, other) => (other.untilAtMs ?? 0) - (one.untilAtMs ?? 0));
}

test.each(["mutex", "semaphore"] as const)(
  "%s: a changed end of a pause is recorded with the pause that it replaces",
  async (kind) => {
    const events: PauseEvent[] = [];
    const listener = (event: unknown): void => void events.push(event as PauseEvent);
    channels.pause.subscribe(listener);
    try {
      const { pause } = await holdfast.pause(NAME, { label: "db", by: "ana", kind });
      const again = { pause: pause.owner, untilAtMs: FAR_MS, kind };
      const extended = await extendPause(holdfast, NAME, again);
      expect(extended.outcome).toBe("extended");
      // The first change replaced the pause's owner id, so the old id no longer matches.
      expect((await extendPause(holdfast, NAME, { ...again, untilAtMs: FAR_MS - 1 })).outcome).toBe("other-pause");
      expect(events).toMatchObject([
        { kind, owner: pause.owner, pause: { untilAtMs: undefined } },
        { kind, former: pause.owner, pause: { by: "ana", label: "db", untilAtMs: FAR_MS } },
      ]);
      expect(events[0]).not.toHaveProperty("former");
      expect(events[1]?.owner).toBe(events[1]?.pause.owner);
    } finally {
      channels.pause.unsubscribe(listener);
    }
    expect(await told()).toMatchObject([
      { outcome: "paused", by: "ana", untilAtMs: FAR_MS },
      { outcome: "paused", by: "ana", untilAtMs: undefined },
    ]);
  },
);

test("a page's record of a pause is merged with the program's own record and is not a hold", async () => {
  const words = { label: "é".repeat(128), by: "ü".repeat(128) };
  const { pause } = await holdfast.pause(NAME, { ...words, untilAtMs: FAR_MS });
  const own = { kind: "mutex", name: NAME, reason: "by the page", untilAtMs: FAR_MS } as const;
  expect(pause.owner.length).toBeGreaterThan(1_024);
  await appendHistory(holdfast, { ...own, what: "paused", owner: pause.owner });
  await holdfast.resume(NAME, { by: "ben" });
  await appendHistory(holdfast, { ...own, what: "resumed", owner: pause.owner, untilAtMs: undefined });
  expect(await told()).toEqual([
    { outcome: "paused", by: words.by, reason: "by the page", untilAtMs: FAR_MS, owner: undefined },
    { outcome: "resumed", by: "ben", reason: "by the page", untilAtMs: undefined, owner: undefined },
  ]);
});

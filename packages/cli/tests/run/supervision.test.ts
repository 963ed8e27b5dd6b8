import { afterEach, expect, it } from "vitest";
import { deferred } from "../../../holdfast/src/testing/delays.js";
import type { ChildExit, ProcessGroup } from "../../src/child/process-group.js";
import { SignalDesk } from "../../src/child/signals.js";
import { supervise } from "../../src/child/supervision.js";

const desk = new SignalDesk();
afterEach(() => desk.close());

/**
 * A group whose child dies immediately when it is killed, while another process remains visible for `timesSeen` checks.
 */
function slowToDie(timesSeen: number): { group: ProcessGroup; sent: NodeJS.Signals[] } {
  const sent: NodeJS.Signals[] = [];
  const exited = deferred<ChildExit>();
  let exit: ChildExit | undefined;
  let left = timesSeen;
  const group = {
    exited: exited.promise,
    get exit() {
      return exit;
    },
    signal(signal: NodeJS.Signals) {
      sent.push(signal);
      if (signal !== "SIGKILL" || exit !== undefined) return;
      exit = { code: null, signal };
      exited.resolve(exit);
    },
    letGo() {},
    isAlive() {
      left -= 1;
      return left >= 0;
    },
  };
  return { group: group as unknown as ProcessGroup, sent };
}

it("processes that were killed with their group get KILL again without TERM, and are not reported again", async () => {
  const { group, sent } = slowToDie(3);
  const told: string[] = [];
  const end = await supervise(
    group,
    { validForMs: () => 60_000, signal: new AbortController().signal },
    {
      // The time limit is exceeded at the start, and there is no grace period.
      maxHoldMs: 0,
      times: { killAfterMs: 0, marginMs: 1_000 },
      stopSignal: "SIGTERM",
      onLost: "SIGTERM",
      killsAfterForwarding: false,
      leavesGroup: false,
      isForeground: false,
    },
    desk,
    {
      lost: () => told.push("lost"),
      signalled: (signal, why) => told.push(`${signal} ${why}`),
      childExited: () => told.push("exited"),
    },
  );
  expect(end).toMatchObject({ exit: { signal: "SIGKILL" }, isMaxHold: true });
  expect(told).toEqual(["SIGTERM max-hold", "SIGKILL max-hold", "exited"]);
  const [first, ...after] = sent;
  expect([first, new Set(after)]).toEqual(["SIGTERM", new Set(["SIGKILL"])]);
  expect(after.length).toBeGreaterThan(3);
});

/** What the judge of a history must know about its run. */
import type { HistoryRecord } from "../history/index.js";
import { settleMs } from "./calling.js";
import { isOfCrowd, labelOf } from "./crowds.js";
import type { Circumstances } from "./finding.js";
import { PERMITS } from "./kinds/semaphore.js";
import { labelIn } from "./owners.js";
import type { World } from "./world.js";

/** The longest delay until a loss is noticed: by a late timer, or by polling if clocks have diverged. */
const NEXT_LOOK_MS = 1_020;
/** The fastest clock of a process, as a factor. */
const FASTEST = 1.0101;

/** Derives the circumstances of a run. */
export function circumstancesOf({ setup, judge, network, recorder }: World): Circumstances {
  // How far the server's clock is behind at that time, because it was set back or stopped.
  let lateMs = 0;
  const slowClock = setup.faults
    .toSorted((a, b) => a.atMs - b.atMs)
    .flatMap((fault) => {
      const { atMs } = fault;
      if (fault.what === "freeze-server-clock") {
        lateMs += fault.forMs;
        return [{ beganMs: atMs + fault.forMs - lateMs, endedMs: atMs + fault.forMs }];
      }
      if (fault.what !== "step-server-clock" || fault.byMs >= 0) return [];
      // A lease that ended within that span becomes valid again, unless a script has found it ended since.
      lateMs -= fault.byMs;
      return [{ beganMs: atMs - lateMs, endedMs: atMs }];
    });
  return {
    kind: setup.kind,
    exclusionUntilMs: judge.lostAt("exclusion"),
    tokensUntilMs: judge.lostAt("tokens"),
    slowClock,
    hasPartedClocks: setup.faults.some(
      (fault) => fault.what === "step-wall" || (fault.what === "freeze" && fault.suspended),
    ),
    isOrderly: network.isOrderly,
    settleMs: settleMs(setup) * 1.01,
    permits: PERMITS,
    isResized: setup.sessions.some(({ way }) => way === "resize"),
    // A caller that joins a claim does not poll itself; only the polling of the claim is known.
    servedBy: ({ owner, callMs }, freeMs) =>
      isOfCrowd(labelIn(owner))
        ? Number.POSITIVE_INFINITY
        : (recorder.witness?.asks.servedBy(owner, callMs, freeMs) ?? Number.POSITIVE_INFINITY),
    leftMs: (waiter) => {
      const waitMs = setup.sessions.find((session) => labelOf(session) === waiter.owner)?.waitMs ?? Infinity;
      const leftMs = recorder.truth.leftMs(waiter);
      return leftMs >= waiter.callMs + waitMs / FASTEST ? leftMs : Infinity;
    },
    shared: judge.queues.shared.all,
    // Of several grants to an owner, the first one is kept, because it is inserted last.
    firstTokens: new Map(recorder.truth.grants.reverse().map(({ claim, token }) => [claim.owner, token])),
  };
}

/** Marks the turns after which a process had no time to do due work. */
export function withInterruptedTurns(records: readonly HistoryRecord[], endMs: number): HistoryRecord[] {
  const stops = records.filter(
    (record) => record.type === "fault" && (record.id.startsWith("kill-") || record.id.startsWith("freeze-")),
  );
  return records.map((record) => {
    if (record.type !== "turn") return record;
    const wasInterrupted =
      record.beganMs > endMs - NEXT_LOOK_MS ||
      stops.some(
        (stop) =>
          stop.type === "fault" &&
          stop.target === record.process &&
          record.beganMs <= stop.beganMs &&
          record.beganMs > stop.beganMs - NEXT_LOOK_MS,
      );
    return wasInterrupted ? { ...record, wasInterrupted } : record;
  });
}

const OWNER = /p\d+-\d+-_*\d+\/\d+\/[^ ",]*/g;

/** Records the owners whose claims are in any key. @param isReachable  whether every client could reach the server */
export function scanKeys({ keyspace, recorder, nowMs, setup, clock }: World, isReachable: boolean): void {
  const owners = new Map<string, Set<string>>();
  // No process cleans up a late request of a killed process.
  const killed = recorder.killed().map((name) => `${name.replace(".", "-")}-`);
  for (const { key, value } of keyspace.dump()) {
    const lockName = /\{(.*)\}/.exec(key)?.[1];
    if (lockName === undefined) continue;
    // These keys keep data about the last grant, leader, signals and steals.
    if (/:(?:fence|value|signalled|steals)$/.test(key)) continue;
    // These keys keep ended entries until a client uses them, or until they expire.
    if (!isReachable && /^hf:(?:semaphore|read-write-lock):/.test(key)) continue;
    // A queue also keeps a waiter that could not report that it left, until it would be granted.
    if (!isReachable && key.endsWith(":queue")) continue;
    const found = owners.get(lockName) ?? new Set<string>();
    owners.set(lockName, found);
    for (const [owner] of String(value).matchAll(OWNER)) {
      if (killed.some((prefix) => owner.startsWith(prefix))) continue;
      found.add(owner);
      // The two claims of a condition share a label.
      const label = labelIn(owner);
      if (label === owner || setup.kind === "condition") continue;
      if (!isOfCrowd(label)) found.add(label);
      else for (const { id, crowd } of setup.sessions) if (label === `c${crowd}`) found.add(`${label}.s${id}`);
    }
  }
  const atMs = nowMs + clock.aheadMs;
  for (const [lockName, found] of owners)
    recorder.add({ type: "key-scan", atMs, lockName, owners: [...found], isReachable });
}

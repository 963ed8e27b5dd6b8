/** A process of a liveness cell: acquires locks on command and reports what happens. */
import { setTimeout as sleep } from "node:timers/promises";
import type { Kind } from "../../history/records.js";
import { Caller, type Lease } from "../programs/caller.js";
import { isRefused } from "../programs/ends.js";
import { KINDS } from "../programs/messages.js";
import { Recorder } from "../programs/recorder.js";
import { monotonicMs } from "../topology/monotonic.js";
import { connectSubject } from "./connection.js";
import type { ActorEvent, ActorSettings, AskAnswer, Asked, Asking, Call, Said, StampedeAnswer } from "./messages.js";

/** How long before the deadline of a stampede the event loop is observed. */
const WATCHED_BEFORE_MS = 250;
/** How long the event loop is observed after the stampede, while queued work may still run. */
const WATCHED_AFTER_MS = 500;

const settings = JSON.parse(process.argv[2] ?? "{}") as ActorSettings;
const kind: Kind = KINDS[settings.letter];
const recorder = new Recorder(settings);
const connection = await connectSubject(settings);
const caller = new Caller(connection, recorder, settings.process);
const holds = new Map<string, Lease>();
let isResting = false;
let contending: Promise<void> = Promise.resolve();

// The parent process is gone and cannot end this one.
process.on("disconnect", () => process.exit(1));
process.on("warning", ({ name, message }) => tell("warning", "", `${name}: ${message}`));
// A request on a black-holed connection may reject after nobody awaits it any longer.
process.on("unhandledRejection", () => {});
process.on("message", (asked: Asked) => void answer(asked));
say({ type: "answer", number: 0 });

function say(said: Said): void {
  process.send?.(said);
}

function tell(what: ActorEvent["what"], lockName: string, message: string): void {
  say({ type: "event", what, atMs: monotonicMs(), lockName, message });
}

async function answer({ number, call }: Asked): Promise<void> {
  try {
    say({ type: "answer", number, value: await act(call) });
  } catch (error) {
    say({ type: "answer", number, error: error instanceof Error ? (error.stack ?? error.message) : String(error) });
  }
}

async function act(call: Call): Promise<unknown> {
  switch (call.verb) {
    case "hold":
      return hold(call);
    case "release":
      return release(call.lockName);
    case "wait":
      for (let count = 0; count < call.count; count += 1) void section(call, call.holdMs);
      return undefined;
    case "contend":
      isResting = false;
      contending = contend(call, call.holdMs);
      return undefined;
    case "rest":
      isResting = true;
      return contending;
    case "ask":
      return ask(call);
    case "waiters":
      return connection.waiters?.(call.lockName, kind);
    case "stampede":
      return stampede(call);
  }
}

function acquire({ lockName, leaseMs, waitMs, renew = false }: Asking): ReturnType<Caller["acquire"]> {
  return caller.acquire(kind, { lockName, leaseMs, waitMs, renew, permits: 1 });
}

async function hold(asking: Asking): Promise<void> {
  const { lockName } = asking;
  const lease = await acquire(asking);
  if (isRefused(lease)) throw new Error(`${lockName} was not granted: ${lease.message}`);
  holds.set(lockName, lease);
  lease.held.onLost(() => tell("lost", lockName, ""));
}

async function release(lockName: string): Promise<void> {
  const lease = holds.get(lockName);
  if (lease === undefined) throw new RangeError(`this process does not hold ${lockName}`);
  holds.delete(lockName);
  await caller.release(lease);
}

/** @returns whether it was granted */
async function section(asking: Asking, holdMs: number): Promise<boolean> {
  const lease = await acquire(asking);
  if (isRefused(lease)) {
    tell("refused", asking.lockName, lease.message);
    return false;
  }
  tell("granted", asking.lockName, "");
  if (holdMs > 0) await sleep(holdMs);
  // The outcome is recorded.
  await caller.release(lease);
  tell("released", asking.lockName, "");
  return true;
}

async function contend(asking: Asking, holdMs: number): Promise<void> {
  // A caller that fails immediately would retry without a pause.
  while (!isResting) if (!(await section(asking, holdMs))) await sleep(holdMs);
}

async function ask(asking: Asking): Promise<AskAnswer> {
  const lease = await acquire(asking);
  if (isRefused(lease)) return { isGranted: false, message: lease.message };
  await caller.release(lease);
  return { isGranted: true, message: "" };
}

async function stampede(call: Call & { readonly verb: "stampede" }): Promise<StampedeAnswer> {
  const { lockName, otherName, count, waitMs, leaseMs, renew } = call;
  let isOtherLost = false;
  await hold({ lockName: otherName, leaseMs, waitMs: leaseMs, renew });
  holds.get(otherName)?.held.onLost(() => {
    isOtherLost = true;
  });
  const deadlineMs = monotonicMs() + waitMs;
  const others: Record<string, number> = {};
  let timedOut = 0;
  let lastMs = deadlineMs;
  // Does not use the recorder, whose file writes would distort the measurement.
  const callers = Array.from({ length: count }, async () => {
    const end = await connection.acquire(
      {
        lockName,
        leaseMs,
        // Makes all of them time out at the same instant, however long it takes to start them.
        waitMs: Math.max(1, Math.round(deadlineMs - monotonicMs())),
        renew: false,
        permits: 1,
        limit: 1,
        isShared: true,
        owner: "",
      },
      kind,
    );
    lastMs = Math.max(lastMs, monotonicMs());
    if (isRefused(end) && end.outcome === "no") timedOut += 1;
    else {
      const word = isRefused(end) ? (end.message.split(":")[0] ?? "") : "granted";
      others[word] = (others[word] ?? 0) + 1;
    }
  });
  await sleep(Math.max(0, deadlineMs - WATCHED_BEFORE_MS - monotonicMs()));
  const watch = watchTurns();
  await Promise.all(callers);
  await sleep(WATCHED_AFTER_MS);
  const stallMs = watch.end();
  // The end of a lease is noticed by checking it.
  isOtherLost ||= holds.get(otherName)?.held.isHeld() === false;
  return { deadlineMs, settledAfterMs: lastMs - deadlineMs, stallMs, timedOut, others, isOtherLost };
}

/** Checks the time in each turn of the event loop. */
function watchTurns(): { end(): number } {
  let isOver = false;
  let longestMs = 0;
  let beforeMs = monotonicMs();
  const turn = (): void => {
    const nowMs = monotonicMs();
    longestMs = Math.max(longestMs, nowMs - beforeMs);
    beforeMs = nowMs;
    if (!isOver) setImmediate(turn);
  };
  setImmediate(turn);
  return {
    end() {
      isOver = true;
      return Math.max(longestMs, monotonicMs() - beforeMs);
    },
  };
}

/** A client process of a run. It acquires locks on command: repeatedly on its own, or one lease at a time. */
import { setTimeout as sleep } from "node:timers/promises";
import type { Client } from "../stage.js";
import { subjectOf } from "../subjects/table.js";
import { monotonicMs } from "../topology/monotonic.js";
import { BarrierCaller } from "./barrier.js";
import { Caller, type Lease } from "./caller.js";
import { conditionCall } from "./condition.js";
import { EffectLine } from "./effects.js";
import { isRefused } from "./ends.js";
import { LatchCaller } from "./latch.js";
import {
  type Answered,
  type Asked,
  besideOf,
  type Call,
  type ClientSettings,
  KINDS,
  type TakeAnswer,
} from "./messages.js";
import { Recorder } from "./recorder.js";
import { Sessions } from "./sessions.js";

/** How often a turn of the event loop is recorded. Less often in a crowd, because all processes share this machine. */
const TURN_EVERY_MS = { few: 20, crowd: 80 };
const FEW = 8;
/** How long closed resources may take to disappear. */
const GONE_WITHIN_MS = 3_000;
/** Resources that are not the subject's: the channel to the parent process, and the standard streams. */
const OURS = new Set(["PipeWrap", "TTYWrap", "WriteWrap", "FSReqCallback", "FSReqPromise", "CloseReq"]);

const settings = JSON.parse(process.argv[2] ?? "{}") as ClientSettings;
const recorder = new Recorder(settings);
const unseen: string[] = [];
let wallOffsetMs = settings.wallOffsetMs;

process.on("unhandledRejection", (reason) => {
  unseen.push(reason instanceof Error ? (reason.stack ?? reason.message) : String(reason));
});
// The parent process is gone and cannot end this one.
process.on("disconnect", () => process.exit(1));

const ticking = setInterval(
  () => {
    const beganMs = monotonicMs();
    setImmediate(() => recorder.add({ type: "turn", process: settings.process, beganMs, endedMs: monotonicMs() }));
  },
  settings.clients > FEW ? TURN_EVERY_MS.crowd : TURN_EVERY_MS.few,
);

const subject = await subjectOf(settings.subject);
const connection = await subject.connect({
  port: settings.port,
  reach: settings.reach,
  grace: settings.grace,
  releases: settings.releases,
  commandTimeoutMs: settings.commandTimeoutMs,
  wallOffsetMs: () => wallOffsetMs,
  mutations: settings.mutations,
});
const caller = new Caller(connection, recorder, settings.process);
const latch = new LatchCaller(connection.latch, recorder, settings.process);
const barrier = new BarrierCaller(connection.barrier, recorder, settings.process);
const effects = new EffectLine(settings.resourcePort);
const sessions = new Sessions({ settings, caller, latch, barrier, recorder, effects });
const taken = new Map<number, Lease>();

process.on("message", (asked: Asked) => void answer(asked));
process.send?.({ number: 0, value: "ready" } satisfies Answered);

async function answer({ number, call }: Asked): Promise<void> {
  let answered: Answered;
  try {
    answered = { number, value: await act(call) };
  } catch (error) {
    answered = { number, error: error instanceof Error ? (error.stack ?? error.message) : String(error) };
  }
  process.send?.(answered);
}

async function act(call: Call): Promise<unknown> {
  switch (call.verb) {
    case "work":
      sessions.begin(call.work);
      return undefined;
    case "rest":
      return sessions.rest();
    case "take":
      return take(call.options);
    case "extend":
      await caller.extend(leaseOf(call.leaseId), call.leaseMs);
      return undefined;
    case "release": {
      const lease = leaseOf(call.leaseId);
      taken.delete(call.leaseId);
      await caller.release(lease);
      return undefined;
    }
    case "latch":
      return latch.call(call.lockName, call.act, call.number);
    case "barrier":
      return barrier.call(call.lockName, call.act, call.waitMs);
    case "condition":
      return conditionCall(connection.condition, recorder, call);
    case "sample":
      return caller.sample(leaseOf(call.leaseId));
    case "write":
      return sessions.write(leaseOf(call.leaseId), call.isFenced);
    case "block":
      for (const endMs = monotonicMs() + call.forMs; monotonicMs() < endMs; );
      // Nothing runs in between: what each lease reports right after the block is what matters.
      for (const lease of taken.values()) caller.sample(lease);
      return undefined;
    case "stepWall":
      wallOffsetMs = call.offsetMs;
      return undefined;
    case "vanish":
      if (call.how === "exit") process.exit(0);
      setImmediate(() => {
        throw new Error("a deliberate uncaught error");
      });
      return undefined;
    case "close":
      return close();
  }
}

async function take(options: Parameters<Client["take"]>[0]): Promise<TakeAnswer> {
  const { lockName, leaseMs, waitMs = 0, renew = false, permits = 1, mode, abortMs } = options;
  const kind = KINDS[settings.letter];
  const lease = await caller.acquire(kind, {
    lockName,
    ...(kind === "multi-lock" ? { otherNames: [besideOf(lockName)] } : {}),
    leaseMs,
    waitMs,
    renew,
    permits,
    ...(kind === "read-write-lock" ? { mode: mode ?? "write" } : {}),
    ...(abortMs === undefined ? {} : { abortMs }),
  });
  const [place] = isRefused(lease) ? [] : lease.places;
  if (isRefused(lease)) return { refusal: lease.message };
  if (place === undefined) return { refusal: "it holds nothing" };
  taken.set(place.id, lease);
  return { taken: { leaseId: place.id, token: place.part.token, validUntilMs: lease.held.validUntilMs() } };
}

function leaseOf(leaseId: number): Lease {
  const lease = taken.get(leaseId);
  if (lease === undefined) throw new RangeError(`this process has no lease ${leaseId}`);
  return lease;
}

/** Ends everything that was started. @returns what is left of it */
async function close(): Promise<readonly string[]> {
  await sessions.rest();
  await connection.close();
  effects.close();
  clearInterval(ticking);
  const left = (): string[] => process.getActiveResourcesInfo().filter((resource) => !OURS.has(resource));
  const endMs = monotonicMs() + GONE_WITHIN_MS;
  let found = left();
  while (found.length > 0 && monotonicMs() < endMs) {
    // This timer must not count as an active resource.
    await sleep(10, undefined, { ref: false });
    found = left();
  }
  recorder.close();
  return [
    ...found.map((resource) => `${settings.process} still has a ${resource} after everything was closed`),
    ...unseen.map((reason) => `${settings.process} has an unhandled rejection: ${reason}`),
  ];
}

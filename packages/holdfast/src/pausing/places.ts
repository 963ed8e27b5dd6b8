/** Finds the keys of a lock that can be paused, from its kind and name. */
import { call, type NamedStore } from "../core/call.js";
import { type Pause, StoreError } from "../core/errors.js";
import { checkKey, checkName, lockKeys, mappedKeys, show } from "../core/keys.js";
import type { LockProtocol } from "../core/protocol.js";
import { parsePause } from "../core/protocol.js";
import type { Session } from "../core/session.js";
import { pausingPause, pausingPausePermits, pausingResume, pausingResumePermits } from "../generated/pausing.js";
import { MutexProtocol } from "../mutex/protocol.js";
import { permitsProtocol } from "../permits/protocol.js";

/** The kinds of lock that can be paused: those that are held on one server. */
export type PauseKind = "mutex" | "reentrant-mutex" | "semaphore" | "read-write-lock" | "election";

const KINDS: readonly PauseKind[] = ["mutex", "reentrant-mutex", "semaphore", "read-write-lock", "election"];

/** A semaphore assigns slot numbers only to grants of at most this many permits. */
const MOST_SLOTS = 1_000;

/** The reply to a pause. `texts` is the current pause. */
type PauseReply =
  | { readonly outcome: "standing" | "paused"; readonly nowMs: number; readonly texts: readonly string[] }
  | { readonly outcome: "over"; readonly nowMs: number }
  | { readonly outcome: "ended"; readonly nowMs: number };

/** The reply to a resume. `texts` describes the pause that has ended, or another pause that remains in effect. */
type ResumeReply =
  | { readonly outcome: "running" }
  | { readonly outcome: "resumed"; readonly nowMs: number; readonly waiters: number; readonly texts: readonly string[] }
  | { readonly outcome: "other"; readonly nowMs: number; readonly texts: readonly string[] };

/** A lock that can be paused. A lock with one holder and a lock with permits use different scripts. */
export interface PausedPlace {
  readonly caller: NamedStore;
  readonly protocol: LockProtocol & { readonly inbox: string };
  /** Key of the current pause. */
  readonly pauseKey: string;
  pause(
    args: Record<"request" | "inbox" | "words", string> & { readonly untilMs: number },
    timeoutMs: number,
  ): Promise<PauseReply>;
  resume(args: Record<"request" | "inbox" | "only", string>, timeoutMs: number): Promise<ResumeReply>;
}

/**
 * Returns the keys and scripts that pause and resume a lock.
 *
 * @param key  the `key` option of the mutex; not allowed for other kinds
 * @throws TypeError, RangeError  an invalid name, kind or key
 */
export function placeOf(
  session: Session,
  prefix: string,
  name: string,
  kind: PauseKind = "mutex",
  key: string | undefined,
): PausedPlace {
  checkName(name);
  if (!KINDS.includes(kind)) throw new TypeError(`kind must be one of ${KINDS.join(", ")}; got ${show(kind)}`);
  const { store } = session;
  const caller = { store, name };
  if (kind === "semaphore" || kind === "read-write-lock") {
    if (key !== undefined) throw new TypeError(`key is only for a mutex, not a ${kind}; got ${show(key)}`);
    const keys = lockKeys(prefix, kind, name);
    const inbox = session.inboxOf(keys.tag);
    const numbered = kind === "semaphore" ? MOST_SLOTS : 0;
    // The declared number has no effect, because neither a pause nor a resume stores it on the server.
    const protocol = { ...permitsProtocol({ store, kind, name, keys, inbox, declared: 1, numbered }), inbox };
    const { base: state } = keys;
    const others = { fence: `${state}:fence`, holders: `${state}:holders`, slots: `${state}:slots` };
    const all = { state, ...others, queue: `${state}:queue`, pause: `${state}:pause`, resumed: `${state}:resumed` };
    return {
      caller,
      protocol,
      pauseKey: all.pause,
      pause: (args, timeoutMs) => call(caller, pausingPausePermits, all, { ...args, numbered }, timeoutMs),
      resume: (args, timeoutMs) => call(caller, pausingResumePermits, all, { ...args, numbered }, timeoutMs),
    };
  }
  const isElection = kind === "election";
  if (isElection && key !== undefined)
    throw new TypeError(`key is only for a mutex, not an election; got ${show(key)}`);
  const machine = isElection ? "election" : "mutex";
  const keys = key === undefined ? lockKeys(prefix, machine, name) : mappedKeys(prefix, machine, checkKey(key));
  const protocol = new MutexProtocol({ store, name, key, keys, inbox: session.inboxOf(keys.tag) }, kind);
  const all = { ...protocol.keys, resumed: `${keys.base}:resumed` };
  return {
    caller,
    protocol,
    pauseKey: all.pause,
    pause: (args, timeoutMs) => call(caller, pausingPause, all, args, timeoutMs),
    resume: (args, timeoutMs) => call(caller, pausingResume, all, args, timeoutMs),
  };
}

/** Parses the pause in a reply from the server. @throws StoreError  the pause cannot be parsed */
export function pauseIn(name: string, [text = ""]: readonly string[]): Pause {
  const found = parsePause(text);
  if (found !== undefined) return found;
  const cause = new Error(`the server has a pause that cannot be read: ${show(text)}`);
  throw new StoreError(name, { mayHaveRun: true, transient: false, cause });
}

/** Creates the error for a pause whose end is in the past. @param nowMs  the server's time, in ms since 1970 */
export function endHasPassed(untilAtMs: number | undefined, nowMs: number): RangeError {
  const serverTime = new Date(nowMs).toISOString();
  return new RangeError(
    `untilAtMs must be in the future; got ${untilAtMs}; the server's time is ${nowMs} (${serverTime})`,
  );
}

/** Checks and returns the `owner` of a pause that a caller passed. @throws TypeError  it is not the owner of a pause */
export function checkPauseOwner(pause: unknown): string {
  if (typeof pause === "string" && parsePause(pause) !== undefined) return pause;
  throw new TypeError(`pause must be the owner id of a pause, as inspect returns it; got ${show(pause)}`);
}

/** Finds the keys of a lock that can be paused, from its kind and name. */
import type { NamedStore } from "../core/call.js";
import { type Pause, StoreError } from "../core/errors.js";
import { checkKey, checkName, lockKeys, mappedKeys, show } from "../core/keys.js";
import type { LockProtocol } from "../core/protocol.js";
import { parsePause } from "../core/protocol.js";
import type { Session } from "../core/session.js";
import { MutexProtocol } from "../mutex/protocol.js";
import { type PermitsProtocol, permitsProtocol } from "../permits/protocol.js";

/** The kinds of lock that can be paused: those that are held on one server. */
export type PauseKind = "mutex" | "reentrant-mutex" | "semaphore" | "read-write-lock" | "election";

const KINDS: readonly PauseKind[] = ["mutex", "reentrant-mutex", "semaphore", "read-write-lock", "election"];

/** The largest number of permits in one grant for which the semaphore assigns slot numbers. */
const MOST_SLOTS = 1_000;

interface ExclusiveKeys {
  readonly lock: string;
  readonly fence: string;
  readonly queue: string;
  readonly handed: string;
  readonly pause: string;
  readonly resumed: string;
}

interface PermitKeys {
  readonly state: string;
  readonly fence: string;
  readonly holders: string;
  readonly slots: string;
  readonly queue: string;
  readonly pause: string;
  readonly resumed: string;
}

/** A lock that can be paused, in one of two forms: a lock with one holder, or permits. */
export type PausedPlace = { readonly caller: NamedStore } & (
  | {
      readonly isPermits: false;
      readonly protocol: LockProtocol & { readonly inbox: string };
      readonly keys: ExclusiveKeys;
    }
  | {
      readonly isPermits: true;
      readonly protocol: PermitsProtocol & { readonly inbox: string };
      readonly keys: PermitKeys;
      readonly numbered: number;
    }
);

/**
 * Returns the place of a lock.
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
    if (key !== undefined) throw new TypeError(`key is only for a mutex, and this is a ${kind}; got ${show(key)}`);
    const keys = lockKeys(prefix, kind, name);
    const inbox = session.inboxOf(keys.tag);
    const numbered = kind === "semaphore" ? MOST_SLOTS : 0;
    // The declared number has no effect, because neither a pause nor a resume stores it on the server.
    const protocol = { ...permitsProtocol({ store, kind, name, keys, inbox, declared: 1, numbered }), inbox };
    const { base: state } = keys;
    const others = { fence: `${state}:fence`, holders: `${state}:holders`, slots: `${state}:slots` };
    return {
      caller,
      isPermits: true,
      protocol,
      numbered,
      keys: { state, ...others, queue: `${state}:queue`, pause: `${state}:pause`, resumed: `${state}:resumed` },
    };
  }
  const isElection = kind === "election";
  if (isElection && key !== undefined)
    throw new TypeError(`key is only for a mutex, and this is an election; got ${show(key)}`);
  const machine = isElection ? "election" : "mutex";
  const keys = key === undefined ? lockKeys(prefix, machine, name) : mappedKeys(prefix, machine, checkKey(key));
  const protocol = new MutexProtocol({ store, name, key, keys, inbox: session.inboxOf(keys.tag) }, kind);
  return { caller, isPermits: false, protocol, keys: { ...protocol.keys, resumed: `${keys.base}:resumed` } };
}

/** Parses the pause in a reply of the server. @throws StoreError  the pause cannot be parsed */
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
    `untilAtMs must be in the future; got ${untilAtMs}, and the server's clock says ${nowMs}, ${serverTime}`,
  );
}

/** Checks and returns the `owner` of a pause that a caller passed. @throws TypeError  it is not the owner of a pause */
export function checkPauseOwner(pause: unknown): string {
  if (typeof pause === "string" && parsePause(pause) !== undefined) return pause;
  throw new TypeError(`pause must be the owner of a pause, as inspect returns it; got ${show(pause)}`);
}

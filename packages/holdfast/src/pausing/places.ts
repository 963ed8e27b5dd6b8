/** Where the keys of a lock are that can be paused, by its kind and name. */
import type { NamedStore } from "../core/call.js";
import { type Pause, StoreError } from "../core/errors.js";
import { checkKey, checkName, lockKeys, mappedKeys, show } from "../core/keys.js";
import type { LockProtocol } from "../core/protocol.js";
import { parsePause } from "../core/protocol.js";
import type { Session } from "../core/session.js";
import { MutexProtocol } from "../mutex/protocol.js";
import { type PermitsProtocol, permitsProtocol } from "../permits/protocol.js";

/** Kinds that can be paused: those that are held on one server. */
export type PauseKind = "mutex" | "reentrant-mutex" | "semaphore" | "read-write-lock" | "election";

const KINDS: readonly PauseKind[] = ["mutex", "reentrant-mutex", "semaphore", "read-write-lock", "election"];

/** The heaviest grant of a semaphore whose permits are numbered. */
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

/** A lock that can be paused, and the two forms in which its kind keeps it. */
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

/** @throws TypeError, RangeError  a wrong name, kind or key */
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
    // It declares nothing: how many permits there are is for whoever takes some to say.
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

/** The pause that a server has told. @throws StoreError  it cannot be read */
export function pauseIn(name: string, [text = ""]: readonly string[]): Pause {
  const found = parsePause(text);
  if (found !== undefined) return found;
  const cause = new Error(`the server has a pause that cannot be read: ${show(text)}`);
  throw new StoreError(name, { mayHaveRun: true, transient: false, cause });
}

/** Nobody can pause until a time that has been. */
export function endHasPassed(untilAtMs: number | undefined, nowMs: number): RangeError {
  const serverTime = new Date(nowMs).toISOString();
  return new RangeError(
    `untilAtMs must be in the future; got ${untilAtMs}, and the server's clock says ${nowMs}, ${serverTime}`,
  );
}

/** The `owner` of a pause that a caller has named. @throws TypeError  it is none */
export function checkPauseOwner(pause: unknown): string {
  if (typeof pause === "string" && parsePause(pause) !== undefined) return pause;
  throw new TypeError(`pause must be the owner of a pause, as inspect returns it; got ${show(pause)}`);
}

/**
 * A person takes a lock out of use for a while: whoever holds goes on, and nobody is granted until somebody resumes, or until
 * the end that was said.
 *
 * Loaded when it is first used: a person who pauses can wait for a file to be read, and most processes never do.
 */
import { call } from "../core/call.js";
import { type Holder, type Pause, StoreError } from "../core/errors.js";
import { channels, type PauseEvent, type ResumeEvent } from "../core/events.js";
import { inspect } from "../core/inspection.js";
import { checkWords } from "../core/keys.js";
import { checkWhole } from "../core/options.js";
import { NEVER_MS } from "../core/protocol.js";
import { insist } from "../core/release.js";
import type { Session } from "../core/session.js";
import {
  pausingPause,
  pausingPausePermits,
  pausingResume,
  pausingResumePermits,
} from "../generated/pausing-scripts.js";
import { checkKnown } from "../holdfast-options.js";
import { checkPauseOwner, endHasPassed, type PauseKind, pauseIn, placeOf } from "./places.js";

export type { PauseKind } from "./places.js";

/** Which lock to pause or resume. */
interface Which {
  /**
   * What the lock is. Names of different kinds are different locks; a reentrant mutex is the mutex of its name.
   * @default "mutex"
   */
  readonly kind?: PauseKind | undefined;
  /** The `key` option of the mutex, if it has one. */
  readonly key?: string | undefined;
}

/** What to pause, and what to say to whoever is refused. */
export interface PauseOptions extends Which {
  /** Why, 1 to 256 bytes. */
  readonly label: string;
  /** Who, 1 to 256 bytes: a person, in words that others know. */
  readonly by: string;
  /**
   * When it ends by itself, in ms since 1970 by the server's clock, whether or not anybody is there then. Absent: when
   * somebody resumes, and not before.
   */
  readonly untilAtMs?: number | undefined;
}

/** What to resume. */
export interface ResumeOptions extends Which {
  /** Who, 1 to 256 bytes. */
  readonly by: string;
  /**
   * The `owner` of the pause that is meant: another one goes on. Who decided by what was shown a while ago names it.
   * Absent: whichever stands.
   */
  readonly pause?: string | undefined;
}

/** How a pause was begun. */
export interface PauseOutcome {
  /** `already-paused`: somebody else had paused it before, and that pause stands; this call has changed nothing. */
  readonly outcome: "paused" | "already-paused";
  /** The pause that stands. */
  readonly pause: Pause;
  /** Who holds it all the same, since before: they go on, and may renew, until they release. */
  readonly holders: readonly Holder[];
  /** How many wait, and go on waiting: they are served in their order when it ends. */
  readonly waiterCount: number;
}

/** How a pause was ended. */
export type ResumeOutcome =
  | {
      readonly outcome: "resumed";
      /** The pause that has ended. */
      readonly pause: Pause;
      /** How long it lasted, by the server's clock, in ms. */
      readonly pausedForMs: number;
      /** How many were waiting: the first of them is granted already, and the others follow in their order. */
      readonly waiterCount: number;
    }
  | { readonly outcome: "not-paused" }
  /** Only where a `pause` was named: this one stands, and goes on. */
  | { readonly outcome: "other-pause"; readonly pause: Pause };

/** What stands behind a Holdfast on one server. */
export interface PausingOn {
  readonly session: Session;
  readonly prefix: string;
}

/** See `Holdfast.pause`. */
export async function pause(
  { session, prefix }: PausingOn,
  name: string,
  options: PauseOptions,
): Promise<PauseOutcome> {
  const { label, by, untilAtMs, kind, key } = checkKnown<PauseOptions>(options ?? {}, [
    "label",
    "by",
    "untilAtMs",
    "kind",
    "key",
  ]);
  const words = `${encodeURIComponent(checkWords("by", by))}/${encodeURIComponent(checkWords("label", label))}`;
  if (untilAtMs !== undefined) checkWhole("untilAtMs", untilAtMs, 1, NEVER_MS - 1);
  const place = placeOf(session, prefix, name, kind, key);
  const request = session.newRequestId(name);
  // Where a lock may be evicted, so may a pause.
  if (!session.guard.isOpen) await session.guard.check(name);
  const reply = await insist(session, () => {
    const args = { request, untilMs: untilAtMs ?? NEVER_MS, words, inbox: place.protocol.inbox };
    return place.isPermits
      ? call(
          place.caller,
          pausingPausePermits,
          place.keys,
          { ...args, numbered: place.numbered },
          session.commandTimeoutMs,
        )
      : call(place.caller, pausingPause, place.keys, args, session.commandTimeoutMs);
  });
  if (reply.outcome === "over") {
    throw endHasPassed(untilAtMs, reply.nowMs);
  }
  if (reply.outcome === "ended") {
    const cause = new Error("the lock was resumed before the reply came");
    throw new StoreError(name, { mayHaveRun: true, transient: false, cause });
  }
  const begun = pauseIn(name, reply.texts);
  if (reply.outcome === "paused" && channels.pause.hasSubscribers) {
    const event: PauseEvent = {
      kind: place.protocol.kind,
      lockName: name,
      owner: begun.owner,
      clientId: session.clientId,
      ...(key === undefined ? {} : { key }),
      pause: begun,
    };
    channels.pause.publish(event);
  }
  const { holders, waiterCount } = await insist(session, () => inspect(session, place.protocol));
  return { outcome: reply.outcome === "paused" ? "paused" : "already-paused", pause: begun, holders, waiterCount };
}

/** See `Holdfast.resume`. */
export async function resume(
  { session, prefix }: PausingOn,
  name: string,
  options: ResumeOptions,
): Promise<ResumeOutcome> {
  const { by, pause: meant, kind, key } = checkKnown<ResumeOptions>(options ?? {}, ["by", "pause", "kind", "key"]);
  const who = checkWords("by", by);
  const only = meant === undefined ? "" : checkPauseOwner(meant);
  const place = placeOf(session, prefix, name, kind, key);
  const request = session.newRequestId(name);
  const reply = await insist(session, () => {
    const args = { request, inbox: place.protocol.inbox, only };
    return place.isPermits
      ? call(
          place.caller,
          pausingResumePermits,
          place.keys,
          { ...args, numbered: place.numbered },
          session.commandTimeoutMs,
        )
      : call(place.caller, pausingResume, place.keys, args, session.commandTimeoutMs);
  });
  if (reply.outcome === "running") return { outcome: "not-paused" };
  if (reply.outcome === "other") return { outcome: "other-pause", pause: pauseIn(name, reply.texts) };
  const ended = pauseIn(name, reply.texts);
  const pausedForMs = Math.max(0, reply.nowMs - ended.sinceAtMs);
  const waiterCount = reply.waiters;
  if (channels.resume.hasSubscribers) {
    const about = { kind: place.protocol.kind, lockName: name, owner: ended.owner, clientId: session.clientId };
    const keyed = key === undefined ? {} : { key };
    const event: ResumeEvent = { ...about, ...keyed, pause: ended, by: who, pausedForMs, waiterCount };
    channels.resume.publish(event);
  }
  return { outcome: "resumed", pause: ended, pausedForMs, waiterCount };
}

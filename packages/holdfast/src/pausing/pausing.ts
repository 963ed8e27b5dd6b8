/**
 * Pauses a lock for an operator. Holders keep the lock, but there are no new grants until the lock is resumed or the
 * pause reaches its end.
 *
 * This module is loaded on first use, because most processes never pause a lock.
 */
import { type Holder, type Pause, StoreError } from "../core/errors.js";
import { channels, type PauseEvent, type ResumeEvent } from "../core/events.js";
import { inspect } from "../core/inspection.js";
import { checkWords } from "../core/keys.js";
import { checkWhole } from "../core/options.js";
import { NEVER_MS } from "../core/protocol.js";
import { insist } from "../core/release.js";
import type { Session } from "../core/session.js";
import { checkKnown } from "../holdfast-options.js";
import { checkPauseOwner, endHasPassed, type PauseKind, pauseIn, placeOf } from "./places.js";

export type { PauseKind } from "./places.js";

/** The lock to pause or resume. */
interface Which {
  /**
   * The kind of lock. Locks of different kinds are separate even if they share a name, except that a mutex and a
   * reentrant mutex with the same name are one lock.
   * @default "mutex"
   */
  readonly kind?: PauseKind | undefined;
  /** The `key` option of the mutex, if it has one. */
  readonly key?: string | undefined;
}

/** Options of `pause`. Callers that are refused because of the pause see `label` and `by`. */
export interface PauseOptions extends Which {
  /** The reason for the pause, 1 to 256 bytes. */
  readonly label: string;
  /** The person who pauses the lock, 1 to 256 bytes. Use a name that other people recognize. */
  readonly by: string;
  /**
   * Server time at which the pause ends by itself, in ms since 1970, even if no process is running. If absent, the
   * pause lasts until you call `resume`.
   */
  readonly untilAtMs?: number | undefined;
}

/** Options of `resume`. */
export interface ResumeOptions extends Which {
  /** The person who resumes the lock, 1 to 256 bytes. */
  readonly by: string;
  /**
   * The `owner` of the pause to end. Set this to end only a pause that you have seen, and not a later one. If
   * absent, `resume` ends the current pause.
   */
  readonly pause?: string | undefined;
}

/** The result of `pause`. */
export interface PauseOutcome {
  /** `already-paused`: another pause was in effect and continues. This call changed nothing. */
  readonly outcome: "paused" | "already-paused";
  /** The current pause. */
  readonly pause: Pause;
  /** The holders from before the pause. They keep the lock and may renew it until they release it. */
  readonly holders: readonly Holder[];
  /** The number of waiters. They stay in the queue and are served in order when the pause ends. */
  readonly waiterCount: number;
}

/** The result of `resume`. */
export type ResumeOutcome =
  | {
      readonly outcome: "resumed";
      /** The pause that has ended. */
      readonly pause: Pause;
      /** How long the pause lasted by the server's clock, in ms. */
      readonly pausedForMs: number;
      /**
       * The number of waiters when the pause ended. If the lock was free, the first waiter already holds it. The others
       * follow in order.
       */
      readonly waiterCount: number;
    }
  | { readonly outcome: "not-paused" }
  /** Another pause is in effect and continues. Possible only if the options name a `pause`. */
  | { readonly outcome: "other-pause"; readonly pause: Pause };

/** The parts of a Holdfast instance on one server that `pause` and `resume` need. */
export interface PausingOn {
  readonly session: Session;
  readonly prefix: string;
}

/** Pauses a lock, like `Holdfast.pause`. @throws as `Holdfast.pause` */
export async function pause(
  { session, prefix }: PausingOn,
  name: string,
  options: PauseOptions,
): Promise<PauseOutcome> {
  const known = ["label", "by", "untilAtMs", "kind", "key"] as const;
  const { label, by, untilAtMs, kind, key } = checkKnown<PauseOptions>(options ?? {}, known);
  const words = `${encodeURIComponent(checkWords("by", by))}/${encodeURIComponent(checkWords("label", label))}`;
  if (untilAtMs !== undefined) checkWhole("untilAtMs", untilAtMs, 1, NEVER_MS - 1);
  const place = placeOf(session, prefix, name, kind, key);
  const request = session.newRequestId(name);
  // A server that may evict locks may also evict the pause, so check its eviction policy first.
  if (!session.guard.isOpen) await session.guard.check(name);
  const args = { request, untilMs: untilAtMs ?? NEVER_MS, words, inbox: place.protocol.inbox };
  const reply = await insist(session, () => place.pause(args, session.commandTimeoutMs));
  if (reply.outcome === "over") throw endHasPassed(untilAtMs, reply.nowMs);
  if (reply.outcome === "ended") {
    const cause = new Error("the lock was resumed before the reply arrived");
    throw new StoreError(name, { mayHaveRun: true, transient: false, cause });
  }
  const begun = pauseIn(name, reply.texts);
  if (reply.outcome === "paused" && channels.pause.hasSubscribers) {
    const about = { kind: place.protocol.kind, lockName: name, owner: begun.owner, clientId: session.clientId };
    const event: PauseEvent = { ...about, ...(key === undefined ? {} : { key }), pause: begun };
    channels.pause.publish(event);
  }
  const { holders, waiterCount } = await insist(session, () => inspect(session, place.protocol));
  return { outcome: reply.outcome === "paused" ? "paused" : "already-paused", pause: begun, holders, waiterCount };
}

/** Ends a pause, like `Holdfast.resume`. @throws as `Holdfast.resume` */
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
  const args = { request, inbox: place.protocol.inbox, only };
  const reply = await insist(session, () => place.resume(args, session.commandTimeoutMs));
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

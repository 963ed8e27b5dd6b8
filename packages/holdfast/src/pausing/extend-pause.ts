/** Moves the end of the current pause to a later or earlier time, without a gap in which the lock could be granted. */

import { call } from "../core/call.js";
import type { Pause } from "../core/errors.js";
import { channels, type PauseEvent } from "../core/events.js";
import { checkWhole } from "../core/options.js";
import { NEVER_MS } from "../core/protocol.js";
import { insist } from "../core/release.js";
import { pausingExtend } from "../generated/pausing.js";
import type { Holdfast } from "../holdfast.js";
import { checkKnown } from "../holdfast-options.js";
import { internalsOf } from "../internals.js";
import { checkPauseOwner, endHasPassed, type PauseKind, pauseIn, placeOf } from "./places.js";

/** The pause to extend, and its new end. */
export interface ExtendPauseOptions {
  /** The `owner` of the pause, as reported by `pause`, `inspect` and `survey`. Any other pause remains unchanged. */
  readonly pause: string;
  /** Server time at which the pause ends, in ms since 1970. If absent, the pause ends only with `resume`. */
  readonly untilAtMs?: number | undefined;
  /** @default "mutex" */
  readonly kind?: PauseKind | undefined;
  /** The `key` option of the mutex, if it has one. */
  readonly key?: string | undefined;
}

/** The result of `extendPause`. */
export type ExtendPauseOutcome =
  | { readonly outcome: "extended"; readonly pause: Pause }
  /** Another pause is in effect and remains unchanged. */
  | { readonly outcome: "other-pause"; readonly pause: Pause }
  | { readonly outcome: "not-paused" };

/**
 * Changes the end of a pause. Its start, label and author remain unchanged.
 *
 * @param name     name of the lock
 * @param options  the pause and its new end; the end must not be in the past
 * @throws StoreError  outcome unknown; repeating the call with the same options is safe
 * @throws ClosedError, UnsupportedError, TypeError, RangeError  as `Holdfast.pause`; nothing was changed
 */
export async function extendPause(
  holdfast: Holdfast,
  name: string,
  options: ExtendPauseOptions,
): Promise<ExtendPauseOutcome> {
  const known = ["pause", "untilAtMs", "kind", "key"] as const;
  const { pause, untilAtMs, kind, key } = checkKnown<ExtendPauseOptions>(options ?? {}, known);
  const meant = checkPauseOwner(pause);
  if (untilAtMs !== undefined) checkWhole("untilAtMs", untilAtMs, 1, NEVER_MS - 1);
  const { session, prefix } = internalsOf(holdfast, name);
  const place = placeOf(session, prefix, name, kind, key);
  session.assertOpen(name);
  const untilMs = untilAtMs ?? NEVER_MS;
  const renewed = meant.replace(/^(pause\/\d+)\/\d+\//, `$1/${untilMs}/`);
  const { caller, pauseKey } = place;
  const reply = await insist(session, () =>
    call(caller, pausingExtend, { pause: pauseKey }, { meant, renewed, untilMs }, session.commandTimeoutMs),
  );
  if (reply.outcome === "over") throw endHasPassed(untilAtMs, reply.nowMs);
  if (reply.outcome === "extended") {
    const extended = pauseIn(name, [renewed]);
    if (channels.pause.hasSubscribers) {
      const about = { kind: place.protocol.kind, lockName: name, owner: renewed, clientId: session.clientId };
      const event: PauseEvent = { ...about, ...(key === undefined ? {} : { key }), pause: extended, former: meant };
      channels.pause.publish(event);
    }
    return { outcome: "extended", pause: extended };
  }
  return reply.texts.length === 0
    ? { outcome: "not-paused" }
    : { outcome: "other-pause", pause: pauseIn(name, reply.texts) };
}

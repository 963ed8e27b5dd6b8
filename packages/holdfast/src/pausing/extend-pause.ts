/** Another end for a pause that stands, later or earlier, without a moment in which somebody could be granted. */

import { call } from "../core/call.js";
import type { Pause } from "../core/errors.js";
import { channels, type PauseEvent } from "../core/events.js";
import { checkWhole } from "../core/options.js";
import { NEVER_MS } from "../core/protocol.js";
import { insist } from "../core/release.js";
import { pausingExtend } from "../generated/pausing-scripts.js";
import type { Holdfast } from "../holdfast.js";
import { checkKnown } from "../holdfast-options.js";
import { internalsOf } from "../internals.js";
import { checkPauseOwner, endHasPassed, type PauseKind, pauseIn, placeOf } from "./places.js";

/** Which pause, and until when. */
export interface ExtendPauseOptions {
  /** The `owner` of the pause that is meant, as `pause`, `inspect` and `survey` tell it: another one is left alone. */
  readonly pause: string;
  /** When it ends by itself, in ms since 1970 by the server's clock. Absent: when somebody resumes, and not before. */
  readonly untilAtMs?: number | undefined;
  /** @default "mutex" */
  readonly kind?: PauseKind | undefined;
  /** The `key` option of the mutex, if it has one. */
  readonly key?: string | undefined;
}

/** What came of it. */
export type ExtendPauseOutcome =
  | { readonly outcome: "extended"; readonly pause: Pause }
  /** It is paused by another pause, which was left as it is. */
  | { readonly outcome: "other-pause"; readonly pause: Pause }
  | { readonly outcome: "not-paused" };

/**
 * Gives a pause another end. Who paused it, why and since when stay as they are.
 *
 * @throws StoreError  it may have been done all the same; calling it again with the same words is safe
 * @throws ClosedError, UnsupportedError, TypeError, RangeError  as `Holdfast.pause`; nothing was done
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
  const reply = await insist(session, () => {
    const args = { meant, renewed, untilMs };
    return call(place.caller, pausingExtend, place.keys, args, session.commandTimeoutMs);
  });
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

/** A pause among the claims of a lock: found there, and told apart from those that work. */
import type { Engine } from "./engine.js";
import type { Pause } from "./error-facts.js";
import { parsePause } from "./owner.js";
import type { State } from "./steps.js";

/**
 * What a server has said of a lock that can be paused, with the pause apart: it is a claim like others there, and to people
 * it is neither a holder nor a waiter.
 */
export function pauseApart<Seen extends State>(state: Seen): Seen {
  const holding = state.holders.findIndex(({ owner }) => parsePause(owner) !== undefined);
  const claim = holding < 0 ? state.waiters[0] : state.holders[holding]?.owner;
  const pause = claim === undefined ? undefined : parsePause(claim);
  if (pause === undefined) return state;
  if (holding >= 0) return { ...state, holders: state.holders.toSpliced(holding, 1), pause };
  const { waiterCount, waiters, ahead } = state;
  return {
    ...state,
    waiterCount: waiterCount - 1,
    waiters: waiters.slice(1),
    ahead: ahead === undefined ? undefined : ahead - 1,
    pause,
  };
}

/** The pause of a lock, if it has not ended: one may stand before others for longer, and then goes as soon as they ask. */
export function standingPause({ runtime }: Pick<Engine, "runtime">, state: State | undefined): Pause | undefined {
  const pause = state?.pause;
  return (pause?.untilAtMs ?? Infinity) > runtime.wallMs() ? pause : undefined;
}

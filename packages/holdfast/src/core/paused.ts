/** What a server tells of a pause: read, and compared with the time. */

import type { Pause } from "./error-facts.js";
import { parsePause } from "./owner.js";
import type { State } from "./protocol.js";
import type { Session } from "./session.js";

/** The part of a state that tells of a pause. @param text  what the key of the pause holds; empty if there is none */
export function pauseOf(text: string): Pick<State, "pause"> {
  const pause = parsePause(text);
  return pause === undefined ? {} : { pause };
}

/** The pause of a lock, if it has not ended since the server told of it. */
export function standingPause({ runtime }: Pick<Session, "runtime">, state: State | undefined): Pause | undefined {
  const pause = state?.pause;
  return (pause?.untilAtMs ?? Infinity) > runtime.wallMs() ? pause : undefined;
}

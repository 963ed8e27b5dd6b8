/** What becomes of a grant: a hold, and a word to who listens. */
import type { Engine } from "./engine.js";
import { channels, type GrantEvent } from "./events.js";
import { Hold } from "./hold.js";
import type { Steps } from "./steps.js";
import type { Turn } from "./turn.js";
import type { HoldOptions } from "./upkeep.js";
import type { Granted } from "./wait-ends.js";

/**
 * Keeps a grant alive.
 *
 * @param turn  which turn of the claim it is, if the claim serves several leases
 */
export function hold(engine: Engine, steps: Steps, granted: Granted, options: HoldOptions, turn?: Turn): Hold {
  if (channels.grant.hasSubscribers) {
    const { claim, token, waitedMs } = granted;
    const event: GrantEvent = {
      kind: steps.kind,
      lockName: steps.name,
      owner: claim.owner,
      token: turn?.token ?? token,
      waitedMs,
    };
    channels.grant.publish(event);
  }
  return new Hold(engine, steps, granted, granted.setAt, options, () => granted.mayStillRun(), turn);
}

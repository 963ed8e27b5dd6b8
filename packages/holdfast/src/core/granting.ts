/** What becomes of a grant: a hold, and a word to who listens. */

import { aboutLock, channels, type GrantEvent } from "./events.js";
import { Hold } from "./hold.js";
import type { LockProtocol } from "./protocol.js";
import type { HoldOptions } from "./renewer.js";
import type { Session } from "./session.js";
import type { Turn } from "./turn.js";
import type { Granted } from "./wait-ends.js";

/**
 * Keeps a grant alive.
 *
 * @param token  of this lease, if that is not the last that the grant has reserved
 * @param turn   of the claim, if it serves others after this lease
 */
export function hold(
  session: Session,
  protocol: LockProtocol,
  granted: Granted,
  options: HoldOptions,
  token: number = granted.token,
  turn?: Turn,
): Hold {
  if (channels.grant.hasSubscribers) {
    const { claim, waitedMs, call } = granted;
    const { kind, exported, permits: limit } = protocol;
    // Without the name of the property where there is none: most locks have no key of their own.
    const mapped = exported?.key === undefined ? {} : { key: exported.key };
    // A read-write lock is made of permits too, of which nobody is told.
    const counted = limit === undefined || kind !== "semaphore" ? {} : { permits: { taken: claim.amount, limit } };
    const event: GrantEvent = { ...aboutLock(protocol, claim.owner), call, token, waitedMs, ...mapped, ...counted };
    channels.grant.publish(event);
  }
  const { claim, token: lastToken, slots, setAt, provisionalMs, isHandedOver, mayStillRun } = granted;
  const facts = { token, setAt, provisionalMs, isHandedOver, options, mayStillRun, turn };
  return new Hold(session, protocol, { claim, token: lastToken, slots }, facts);
}

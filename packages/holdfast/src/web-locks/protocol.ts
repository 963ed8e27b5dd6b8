/** The lock protocol of one request: either that of the read-write lock, or a script that steals the lock. */
import { call } from "../core/call.js";
import { forcedNote } from "../core/inbox.js";
import { lockKeys } from "../core/keys.js";
import type { AcquireReply, Claim, LockProtocol } from "../core/protocol.js";
import type { Session } from "../core/session.js";
import { webLocksSteal } from "../generated/web-locks.js";
import { readWriteLockProtocol } from "../read-write-lock/read-write-lock.js";
import { lostBeforeUse, STOLEN } from "./errors.js";

/** A request, and the events that it reports to its `Line`. */
export interface Watched {
  readonly mode: "exclusive" | "shared";
  readonly steal: boolean;
  /** Called when the server has replied that the claim is waiting or cannot be granted. Not called for a grant. */
  readonly placed: () => void;
  /** Called when there was no reply. */
  readonly unanswered: () => void;
}

/** The protocol, and the number of permits that a claim takes. */
export interface RequestProtocol {
  readonly protocol: LockProtocol;
  readonly amount: number;
}

/** Returns the protocol of one request. */
export function requestProtocol(
  { session, prefix }: { readonly session: Session; readonly prefix: string },
  lockName: string,
  { mode, steal, placed, unanswered }: Watched,
): RequestProtocol {
  const keys = lockKeys(prefix, "read-write-lock", lockName);
  const { store } = session;
  const inner = readWriteLockProtocol({ store, name: lockName, keys, inbox: session.inboxOf(keys.tag) });
  const all = inner.permits ?? 1;
  let replies = 0;
  const note = forcedNote({ reason: STOLEN });
  const takeFromAll = async ({ owner, leaseMs }: Claim, timeoutMs: number): Promise<AcquireReply> => {
    const state = inner.key;
    const places = {
      ...{ state, fence: `${state}:fence`, holders: `${state}:holders`, slots: `${state}:slots` },
      ...{ queue: `${state}:queue`, pause: `${state}:pause`, steals: `${state}:steals` },
    };
    const args = { owner, leaseMs, weight: all, inbox: inner.inbox ?? "", note };
    const reply = await call({ store, name: lockName }, webLocksSteal, places, args, timeoutMs);
    if (reply.outcome !== "over") return reply;
    throw lostBeforeUse(lockName);
  };
  return {
    amount: mode === "shared" ? 1 : all,
    protocol: {
      ...inner,
      mode: mode === "shared" ? "read" : "write",
      // A steal does not queue. It is refused only during a pause, and then asks again when the pause has ended.
      ...(steal && { asksAgain: true as const }),
      async acquire(claim, enqueue, timeoutMs, throughPause) {
        try {
          const reply = steal
            ? await takeFromAll(claim, timeoutMs)
            : await inner.acquire(claim, enqueue, timeoutMs, throughPause);
          replies += 1;
          // The first request of a process may be refused just because the inbox is not open yet. That request is sent
          // again, so it is not placed yet.
          if (reply.outcome === "waiting" || (reply.outcome === "refused" && (enqueue || replies > 1))) placed();
          return reply;
        } catch (error) {
          unanswered();
          throw error;
        }
      },
    },
  };
}

/** `lockManager`: the lock manager of the Web Locks API, implemented with read-write locks. */
import { waitForGrant } from "../core/acquire.js";
import { LeaseLostError } from "../core/errors.js";
import { Hold, hold } from "../core/hold.js";
import { checkName, show } from "../core/keys.js";
import { Lease } from "../core/lease.js";
import { onAbort } from "../core/options.js";
import type { Holdfast } from "../holdfast.js";
import { type Internals, internalsOf } from "../internals.js";
import { type Asked, readArguments } from "./arguments.js";
import { domException, lostBeforeUse } from "./errors.js";
import { type Entrant, Line } from "./line.js";
import { lockNameOf } from "./names.js";
import { requestProtocol } from "./protocol.js";
import { snapshot } from "./snapshot.js";
import type { WebLock, WebLockManager } from "./types.js";

const managers = new WeakMap<Holdfast, WebLockManager>();

/**
 * Returns a lock manager with the interface of `navigator.locks`. All processes with the same server and prefix share
 * its locks. Sends nothing. A second call with the same Holdfast returns the same object.
 *
 * The options of `createHoldfast`, such as `leaseMs`, also apply to the manager's requests, except `waitMs`: a request
 * waits until it is granted, or until its signal aborts.
 *
 * @throws TypeError         `holdfast` is not the result of `createHoldfast`
 * @throws UnsupportedError  `holdfast` uses several independent servers
 *
 * @example
 * import { createHoldfast } from "holdfast";
 * import { lockManager } from "holdfast/web-locks";
 * import { Redis } from "ioredis";
 *
 * const locks = lockManager(createHoldfast({ redis: new Redis() }));
 * await locks.request("report", async (lock, lease) => {
 *   await buildReport({ signal: lease?.signal });
 * });
 */
export function lockManager(holdfast: Holdfast): WebLockManager {
  const internals = internalsOf(holdfast, "lockManager");
  const known = managers.get(holdfast);
  if (known !== undefined) return known;
  const manager = managerOf(holdfast, internals);
  managers.set(holdfast, manager);
  return manager;
}

function managerOf(holdfast: Holdfast, internals: Internals): WebLockManager {
  const lines = new Map<string, Line>();
  const manager = {
    async request(...args: readonly unknown[]): Promise<never> {
      const asked = readArguments(args);
      let lease = await leaseFor(asked, internals, lines);
      // A lease can end before its callback begins, for example if the process was paused. Then the request waits
      // again, like a waiter whose grant was revoked. A steal is not repeated, because it would end the holds of others
      // a second time.
      while (lease !== null && lease.validForMs() <= 0) {
        // The lease ends in this process slightly before it ends on the server, so the server may still need a release.
        await lease.release().catch(() => {});
        if (asked.steal) throw lostBeforeUse(lease.name);
        lease = await leaseFor(asked, internals, lines);
      }
      // The result has whatever type the callback returns.
      return (await (lease === null ? asked.callback(null, null) : whileHeld(asked, lease))) as never;
    },
    async query() {
      // A snapshot must contain every request that was made before it.
      await Promise.all(Array.from(lines.values(), (line) => line.passed()));
      return snapshot(holdfast);
    },
    [Symbol.toStringTag]: "LockManager",
  };
  // Web IDL sets `length` to the number of required arguments.
  Object.defineProperty(manager.request, "length", { value: 2 });
  return Object.freeze(manager);
}

/** Waits until the request is granted. Returns null if it has `ifAvailable` and the lock is not available. */
function leaseFor(asked: Asked, internals: Internals, lines: Map<string, Line>): Promise<Lease | null> {
  const { mode, steal, ifAvailable, signal } = asked;
  const { session, defaults } = internals;
  const lockName = checkName(lockNameOf(asked.name));
  session.assertOpen(lockName);
  const line = lines.get(lockName) ?? new Line();
  lines.set(lockName, line);
  const ended = (): void => {
    line.placed(entrant);
    if (line.isEmpty && lines.get(lockName) === line) lines.delete(lockName);
  };
  const watched = { mode, steal, placed: () => ended(), unanswered: () => line.unanswered(entrant) };
  const { protocol, amount } = requestProtocol(internals, lockName, watched);
  const options = { ...defaults, waitMs: ifAvailable ? 0 : Infinity, signal, amount };
  let entrant!: Entrant;
  return new Promise<Lease | null>((resolve, reject) => {
    let stopListening = (): void => {};
    entrant = {
      isShared: mode === "shared" && !ifAvailable,
      go() {
        stopListening();
        const granted = waitForGrant(session, protocol, options, (grant) => {
          const held = hold(session, protocol, grant, options);
          // Call this only after `hold`, because the next request may be a steal, and its message must find this hold.
          ended();
          return held;
        });
        granted.then((end) => resolve(end instanceof Hold ? new Lease(end) : null), reject).finally(ended);
      },
    };
    if (signal !== undefined) {
      // This listener is needed only until the request is sent, because the waiter then handles the signal.
      stopListening = onAbort(signal, () => {
        ended();
        reject(signal.reason);
      });
    }
    line.enter(entrant);
  });
}

/**
 * Calls the callback and releases the lock when its promise settles. Rejects as soon as the lock is lost, even though
 * the callback continues.
 */
async function whileHeld({ name, mode, signal, callback }: Asked, lease: Lease): Promise<unknown> {
  const lock: WebLock = Object.freeze({ name, mode });
  if (signal?.aborted === true) {
    await lease.release().catch(() => {});
    throw signal.reason;
  }
  return new Promise<unknown>((resolve, reject) => {
    const run = async (): Promise<unknown> => callback(lock, lease);
    let isRunning = true;
    Lease.holdingOf(lease).onLost((reason) => {
      if (reason !== "closing") reject(lossOf(lease, { isRunning }));
    });
    run().then(
      async (result) => {
        isRunning = false;
        // If the lease has expired, `validForMs` reports the loss, which rejects the promise.
        const wasHeld = lease.validForMs() > 0;
        try {
          await lease.release();
          resolve(result);
        } catch (error) {
          // The work ended while the lease was valid, so an unconfirmed release is no failure: the lease will expire.
          if (wasHeld && !(error instanceof LeaseLostError)) resolve(result);
          else reject(lossOf(lease, { isRunning, known: error }));
        }
      },
      async (error: unknown) => {
        isRunning = false;
        await lease.release().catch(() => {});
        reject(error);
      },
    );
  });
}

/**
 * The error for a request whose lock was lost before its callback ended, or before the release.
 *
 * @param known  the error from the release, if it failed
 */
function lossOf(lease: Lease, { isRunning, known }: { isRunning: boolean; known?: unknown }): DOMException {
  let cause = known;
  try {
    lease.assertHeld();
  } catch (error) {
    cause ??= error;
  }
  const why = cause instanceof Error ? cause.message : `The lock ${show(lease.name)} was lost.`;
  return domException(isRunning ? `${why} The callback continues without the lock.` : why, "AbortError", cause);
}

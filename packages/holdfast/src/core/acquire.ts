/** The verbs that make a lease, the same for every kind that is held. */
import { depart } from "./departure.js";
import type { Engine } from "./engine.js";
import { AcquireTimeoutError, ClosedError, LeaseLostError } from "./errors.js";
import { type AcquireEvent, channels, type GrantEvent } from "./events.js";
import { Hold } from "./hold.js";
import type { ExportedLease } from "./holding.js";
import { firstHolder } from "./inspection.js";
import type { Lease } from "./lease.js";
import type { ResolvedOptions } from "./options.js";
import { parseOwner } from "./owner.js";
import type { Grant, Steps, WaitSteps } from "./steps.js";
import { now } from "./validity.js";
import { type Granted, type TimedOut, Waiter } from "./waiter.js";

/** Makes a kind's lease of a hold. */
export type MakeLease<Held extends Lease> = (hold: Hold) => Held;

/** Waits for the lock, at most `waitMs`. @throws AcquireTimeoutError, StoreError, ClosedError, signal.reason */
export async function acquire<Held extends Lease>(
  engine: Engine,
  steps: Steps,
  options: ResolvedOptions,
  make: MakeLease<Held>,
): Promise<Held> {
  const end = await waitForGrant(engine, steps, options);
  if ("token" in end) return make(hold(engine, steps, end, options));
  throw await timeoutError(engine, steps, options, end);
}

/** The error of a wait that ended: who has the lock, as far as can be found out quickly. Never rejects. */
export async function timeoutError(
  engine: Engine,
  steps: WaitSteps,
  { waitMs }: ResolvedOptions,
  end: TimedOut,
): Promise<AcquireTimeoutError> {
  // Who does not wait has not looked either: `tryAcquire` has no use for it.
  const state = waitMs > 0 ? end.state : await steps.inspect(undefined, engine.commandTimeoutMs).catch(() => undefined);
  const holder = await firstHolder(engine, state);
  return new AcquireTimeoutError(steps.name, { waitMs, holder, waitersAhead: state?.ahead ?? state?.waiterCount });
}

/** One attempt; null if the lock is taken. @throws StoreError, ClosedError */
export async function tryAcquire<Held extends Lease>(
  engine: Engine,
  steps: Steps,
  options: ResolvedOptions,
  make: MakeLease<Held>,
): Promise<Held | null> {
  const end = await waitForGrant(engine, steps, { ...options, waitMs: 0 });
  return "token" in end ? make(hold(engine, steps, end, options)) : null;
}

/**
 * Acquires, works, releases. An error of the work always wins. An unknown answer to the release is no error if
 * the work ended inside the lease: nobody else held it meanwhile, and it ends by itself.
 */
export async function run<Held extends Lease, Result>(
  acquireLease: () => Promise<Held>,
  work: (lease: Held) => Result | Promise<Result>,
): Promise<Result> {
  if (typeof work !== "function") throw new TypeError(`work must be a function; got ${typeof work}`);
  const held = await acquireLease();
  let result: Result;
  try {
    result = await work(held);
  } catch (error) {
    await held.release().catch(() => {});
    throw error;
  }
  const wasHeld = held.validForMs() > 0;
  await held.release().catch((error: unknown) => {
    if (!wasHeld || error instanceof LeaseLostError) throw error;
  });
  return result;
}

/** Goes on with a lease that another process exported. @throws LeaseLostError, StoreError, ClosedError */
export async function adopt<Held extends Lease>(
  engine: Engine,
  steps: Steps,
  exported: ExportedLease,
  make: MakeLease<Held>,
): Promise<Held> {
  const { owner, token, leaseMs, renew, maxHoldMs = Infinity, slots = [] } = exported;
  const claim = engine.newClaim(steps.name, leaseMs, parseOwner(owner)?.amount ?? 1, parseOwner(owner)?.label ?? "");
  const grant: Grant = { claim, token, slots };
  const setAt = now(engine.runtime);
  const outcome = await steps.adopt(owner, grant, engine.commandTimeoutMs);
  if (outcome !== "adopted") {
    const reason = outcome === "forgotten" ? "server-lost" : "expired";
    throw new LeaseLostError(steps.name, { reason, token, owner });
  }
  if (engine.isClosing) {
    void depart(engine, steps, claim, false, engine.commandTimeoutMs);
    throw new ClosedError(steps.name);
  }
  return make(new Hold(engine, steps, grant, setAt, { renew, maxHoldMs }));
}

/** A claim's way to a grant, or to the end of its patience. @throws StoreError, ClosedError, signal.reason */
export function waitForGrant(engine: Engine, steps: WaitSteps, options: ResolvedOptions): Promise<Granted | TimedOut> {
  return new Promise((resolve, reject) => {
    options.signal?.throwIfAborted();
    const claim = engine.newClaim(steps.name, options.leaseMs, options.amount, options.label);
    if (channels.acquire.hasSubscribers) {
      const { waitMs, leaseMs } = options;
      const event: AcquireEvent = { kind: steps.kind, lockName: steps.name, owner: claim.owner, waitMs, leaseMs };
      channels.acquire.publish(event);
    }
    new Waiter(engine, steps, options, claim, resolve, reject);
  });
}

/** Keeps a grant alive. */
export function hold(engine: Engine, steps: Steps, granted: Granted, options: ResolvedOptions): Hold {
  if (channels.grant.hasSubscribers) {
    const { claim, token, waitedMs } = granted;
    const event: GrantEvent = { kind: steps.kind, lockName: steps.name, owner: claim.owner, token, waitedMs };
    channels.grant.publish(event);
  }
  return new Hold(engine, steps, granted, granted.setAt, options);
}

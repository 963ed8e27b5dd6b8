/** The verbs that make a lease, the same for every kind that is held. */
import type { Engine } from "./engine.js";
import { AcquireTimeoutError, LeaseLostError } from "./errors.js";
import { type AcquireEvent, channels, type GrantEvent } from "./events.js";
import { firstHolder } from "./inspection.js";
import { type ExportedLease, Lease } from "./lease.js";
import type { ResolvedOptions } from "./options.js";
import { parseOwner } from "./owner.js";
import type { Grant, Steps } from "./steps.js";
import { now } from "./validity.js";
import { type Granted, type TimedOut, Waiter } from "./waiter.js";

/** Waits for the lock, at most `waitMs`. @throws AcquireTimeoutError, StoreError, ClosedError, signal.reason */
export async function acquire(engine: Engine, steps: Steps, options: ResolvedOptions): Promise<Lease> {
  const end = await wait(engine, steps, options);
  if ("token" in end) return lease(engine, steps, end, options);
  throw new AcquireTimeoutError(steps.name, {
    waitMs: options.waitMs,
    holder: await firstHolder(engine, end.state),
    waitersAhead: end.state?.ahead ?? end.state?.waiterCount,
  });
}

/** One attempt; null if the lock is taken. @throws StoreError, ClosedError */
export async function tryAcquire(engine: Engine, steps: Steps, options: ResolvedOptions): Promise<Lease | null> {
  const end = await wait(engine, steps, { ...options, waitMs: 0 });
  return "token" in end ? lease(engine, steps, end, options) : null;
}

/**
 * Acquires, works, releases. An error of the work always wins. An unknown answer to the release is no error if
 * the work ended inside the lease: nobody else held it meanwhile, and it ends by itself.
 */
export async function run<Result>(
  engine: Engine,
  steps: Steps,
  work: (lease: Lease) => Result | Promise<Result>,
  options: ResolvedOptions,
): Promise<Result> {
  if (typeof work !== "function") throw new TypeError(`work must be a function; got ${typeof work}`);
  const held = await acquire(engine, steps, options);
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
export async function adopt(engine: Engine, steps: Steps, exported: ExportedLease): Promise<Lease> {
  const { owner, token, leaseMs, renew, maxHoldMs = Infinity } = exported;
  const claim = engine.newClaim(steps.name, leaseMs, parseOwner(owner)?.label ?? "");
  const grant: Grant = { claim, token };
  const setAt = now(engine.runtime);
  const outcome = await steps.adopt(owner, grant, engine.commandTimeoutMs);
  if (outcome !== "adopted") {
    const reason = outcome === "forgotten" ? "server-lost" : "expired";
    throw new LeaseLostError(steps.name, { reason, token, owner });
  }
  return new Lease(engine, steps, grant, setAt, { renew, maxHoldMs });
}

function wait(engine: Engine, steps: Steps, options: ResolvedOptions): Promise<Granted | TimedOut> {
  return new Promise((resolve, reject) => {
    options.signal?.throwIfAborted();
    const claim = engine.newClaim(steps.name, options.leaseMs, options.label);
    if (channels.acquire.hasSubscribers) {
      const { waitMs, leaseMs } = options;
      const event: AcquireEvent = { kind: steps.kind, lockName: steps.name, owner: claim.owner, waitMs, leaseMs };
      channels.acquire.publish(event);
    }
    new Waiter(engine, steps, options, claim, resolve, reject);
  });
}

function lease(
  engine: Engine,
  steps: Steps,
  { claim, token, setAt, waitedMs }: Granted,
  options: ResolvedOptions,
): Lease {
  if (channels.grant.hasSubscribers) {
    const event: GrantEvent = { kind: steps.kind, lockName: steps.name, owner: claim.owner, token, waitedMs };
    channels.grant.publish(event);
  }
  return new Lease(engine, steps, { claim, token }, setAt, options);
}

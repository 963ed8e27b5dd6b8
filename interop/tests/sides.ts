/**
 * The two sides of a lock that Node and Java share, behind one interface, so that each test runs in both directions.
 */
import { AcquireTimeoutError, LeaseLostError, StoreError } from "holdfast";
import { CONTENTION_MS, type Contender, type CounterStore, contendHere } from "./contention.js";
import { PeerError } from "./peer.js";
import type { JavaClient, JavaLock, JavaThread } from "./redisson-peer.js";

/**
 * After a crash, a renewed hold ends within this time: the watchdog timeout of Java clients, and the lease of
 * Holdfast's.
 */
export const WATCHDOG_MS = 4_000;

/** Longer than any wait in these tests. */
export const LONG_LEASE_MS = 120_000;

/** How long a side waits for an event that must happen. */
export const PATIENCE_MS = 40_000;

/** A hold of one side. */
export interface SideHold {
  /** @returns whether it was still held */
  release(): Promise<boolean>;
}

/** One side: Node or Java. */
export interface Side {
  /**
   * One attempt. @param leaseMs  undefined: renewed until it is released. @returns null if another client holds the
   * lock
   */
  tryHold(name: string, leaseMs?: number): Promise<SideHold | null>;
  /** @returns null if another client held the lock the whole time */
  waitFor(name: string, waitMs: number, leaseMs?: number): Promise<SideHold | null>;
  /** Force-releases the current hold. */
  force(name: string): Promise<boolean>;
  /** Acquires and releases at random around that counter. */
  contend(name: string, counter: string, forMs?: number): Promise<Contender>;
}

interface NodeLease {
  release(): Promise<string>;
}

/** A Holdfast lock. Multi-locks have neither `inspect` nor `forceRelease`. */
export interface NodeLock {
  tryAcquire(options: { leaseMs: number; renew: boolean }): Promise<NodeLease | null>;
  acquire(options: { leaseMs?: number; renew?: boolean; waitMs: number }): Promise<NodeLease>;
  inspect?(): Promise<{ readonly holders: readonly { readonly owner: string }[] }>;
  forceRelease?(held: { owner: string }): Promise<boolean>;
}

/** @param lockOf  returns the lock with a given name */
export function nodeSide(redis: CounterStore, lockOf: (name: string) => NodeLock): Side {
  const options = (leaseMs: number | undefined): { leaseMs: number; renew: boolean } =>
    leaseMs === undefined ? { leaseMs: WATCHDOG_MS, renew: true } : { leaseMs, renew: false };
  return {
    async tryHold(name, leaseMs) {
      return held(await lockOf(name).tryAcquire(options(leaseMs)));
    },
    async waitFor(name, waitMs, leaseMs) {
      const end = await lockOf(name)
        .acquire({ ...options(leaseMs), waitMs })
        .catch(unlessTimedOut);
      return held(end);
    },
    async force(name) {
      const lock = lockOf(name);
      const [holder] = (await lock.inspect?.())?.holders ?? [];
      return holder !== undefined && (await lock.forceRelease?.({ owner: holder.owner })) === true;
    },
    contend(name, counter, forMs) {
      const acquire = async (): Promise<{ release(): Promise<string> }> => {
        const lease = await lockOf(name).acquire({ waitMs: PATIENCE_MS });
        return { release: () => lease.release() };
      };
      return contendHere(redis, counter, acquire, forMs);
    },
  };
}

function held(lease: NodeLease | null): SideHold | null {
  if (lease === null) return null;
  return {
    async release() {
      try {
        return (await lease.release()) === "released";
      } catch (error) {
        if (error instanceof LeaseLostError) return false;
        throw error;
      }
    },
  };
}

function unlessTimedOut(error: unknown): null {
  if (error instanceof AcquireTimeoutError) return null;
  throw error;
}

/**
 * Runs a wait in Node that must fail. Its last attempt is limited to 200 ms; if the machine stalled longer than that,
 * the result is inconclusive and the wait is repeated, at most twice.
 */
export async function inVain<End>(wait: () => Promise<End>): Promise<End> {
  for (let more = 2; ; more -= 1) {
    try {
      return await wait();
    } catch (error) {
      const isSilent = error instanceof AcquireTimeoutError && error.holder === undefined;
      if (more === 0 || !(isSilent || error instanceof StoreError)) throw error;
    }
  }
}

let count = 0;

/** A new thread, and therefore a new owner. */
export function freshThread(client: JavaClient): JavaThread {
  count += 1;
  return client.thread(`thread ${count}`);
}

/** @param of  returns the Java lock with a given name */
export function javaSide(
  client: JavaClient,
  of: (name: string) => JavaLock | { type: "multi"; names: string[] },
): Side {
  const attempt = async (name: string, values: object): Promise<SideHold | null> => {
    const thread = freshThread(client);
    const isHeld = await thread.call("tryLock", { ...of(name), ...values });
    return isHeld ? { release: () => thread.call("unlock", of(name)).catch(unlessNotHeld) } : null;
  };
  return {
    tryHold: (name, leaseMs) => attempt(name, leaseMs === undefined ? {} : { leaseMs }),
    waitFor: (name, waitMs, leaseMs) => attempt(name, leaseMs === undefined ? { waitMs } : { waitMs, leaseMs }),
    force: (name) => freshThread(client).call("forceUnlock", of(name)),
    contend: (name, counter, forMs = CONTENTION_MS) =>
      freshThread(client).call<Contender>("contend", {
        ...of(name),
        counter,
        forMs,
        waitMs: PATIENCE_MS,
      }),
  };
}

function unlessNotHeld(error: unknown): false {
  // Some older releases wrap the error of a multi-lock.
  if (error instanceof PeerError && error.message.includes("IllegalMonitorStateException")) return false;
  throw error;
}

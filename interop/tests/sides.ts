/** The two sides of a lock that Node and Java share, in the same words, so that each test is played both ways. */
import { AcquireTimeoutError, LeaseLostError, StoreError } from "holdfast";
import { CONTENTION_MS, type Contender, type CounterStore, contendHere } from "./contention.js";
import { PeerError } from "./peer.js";
import type { JavaClient, JavaLock, JavaThread } from "./redisson-peer.js";

/** Renewed holds are found again after a crash when this is over: the watchdog of the Java clients, the lease of ours. */
export const WATCHDOG_MS = 4_000;

/** Longer than any wait of these tests. */
export const LONG_LEASE_MS = 120_000;

/** How long a side waits for what is sure to come. */
export const PATIENCE_MS = 40_000;

/** Something held by one side. */
export interface SideHold {
  /** @returns whether it was still held */
  release(): Promise<boolean>;
}

/** Node, or Java. */
export interface Side {
  /** One try. @param leaseMs  undefined: renewed until it is released. @returns null if somebody else has it */
  tryHold(name: string, leaseMs?: number): Promise<SideHold | null>;
  /** @returns null if somebody else has had it all the time */
  waitFor(name: string, waitMs: number, leaseMs?: number): Promise<SideHold | null>;
  /** Ends the hold of whoever has it. */
  force(name: string): Promise<boolean>;
  /** Takes and gives back at random, around that counter. */
  contend(name: string, counter: string, forMs?: number): Promise<Contender>;
}

interface NodeLease {
  release(): Promise<string>;
}

/** What a lock of ours is here. Several at once cannot be looked at, nor ended by force. */
export interface NodeLock {
  tryAcquire(options: { leaseMs: number; renew: boolean }): Promise<NodeLease | null>;
  acquire(options: { leaseMs?: number; renew?: boolean; waitMs: number }): Promise<NodeLease>;
  inspect?(): Promise<{ readonly holders: readonly { readonly owner: string }[] }>;
  forceRelease?(held: { owner: string }): Promise<boolean>;
}

/** @param lockOf  the lock of that name */
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
 * Plays a wait of Node that is to end in vain. The last word on it is waited for no longer than 200 ms: where the machine stood
 * still for longer it was not heard, and the wait is played again, twice at most.
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

/** A thread that nothing was done on yet, so a new owner. */
export function freshThread(client: JavaClient): JavaThread {
  count += 1;
  return client.thread(`thread ${count}`);
}

/** @param of  which lock a name is */
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
  // Some older releases wrap what several locks at once have met.
  if (error instanceof PeerError && error.message.includes("IllegalMonitorStateException")) return false;
  throw error;
}

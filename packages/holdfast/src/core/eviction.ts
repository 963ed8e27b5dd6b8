/**
 * Whether a server may evict locks: every key of a lock has an expiry, so any policy but `noeviction` may take it while it is
 * held, and the next acquire gets it as well.
 */
import { EvictionError } from "./errors.js";
import type { Question } from "./guard.js";

/** What a server does when its memory is full. */
export interface MemoryPolicy {
  /** As `maxmemory-policy` has it. */
  readonly policy: string;
  /** `maxmemory`; 0 means no limit, and then nothing is evicted. */
  readonly maxmemoryBytes: number;
}

/** Whether a server with that policy may take locks away. */
export function evicts({ policy, maxmemoryBytes }: MemoryPolicy): boolean {
  return maxmemoryBytes > 0 && policy !== "noeviction";
}

/** What the question needs to know. */
export interface EvictionFacts {
  /** Asks the server; undefined if it does not show it. @throws StoreError */
  readonly read: () => Promise<MemoryPolicy | undefined>;
  /** Called once, if the server does not show it. */
  readonly onHidden: () => void;
}

/** Refuses a server that may evict locks. One that hides its policy passes, and is told of once. */
export function evictionQuestion({ read, onHidden }: EvictionFacts): Question {
  let hasToldHidden = false;
  return {
    async ask() {
      const found = await read();
      if (found === undefined && !hasToldHidden) {
        hasToldHidden = true;
        onHidden();
      }
      return found !== undefined && evicts(found) ? (lockName) => new EvictionError(lockName, found) : undefined;
    },
  };
}

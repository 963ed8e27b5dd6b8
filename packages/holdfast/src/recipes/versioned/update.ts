/** Read, change, compare and set, again and again: optimistic first, and in turn when that goes on failing. */
import type { Lease, Mutex } from "../../index.js";
import { delay, type Session } from "../../internal.js";
import { ConflictError } from "./errors.js";
import { resolveUpdate, type UpdateOptions } from "./options.js";
import type { VersionedValue, WriteOutcome } from "./values.js";

/** What is updated. */
export interface Updated<Value> {
  readonly session: Session;
  readonly mutex: Mutex;
  read(): Promise<VersionedValue<Value>>;
  write(version: number, next: Value): Promise<WriteOutcome<Value>>;
}

/** The pause before the second attempt is shorter than this, that before the third than twice as long, and so on. */
const PAUSE_MS = 4;
const LONGEST_PAUSE_MS = 500;

/** See `Versioned.update`. */
export async function update<Value>(
  updated: Updated<Value>,
  change: (old: Value | undefined) => Value | Promise<Value>,
  options: UpdateOptions,
): Promise<{ readonly value: Value; readonly version: number }> {
  if (typeof change !== "function") throw new TypeError(`change must be a function; got ${typeof change}`);
  const { attemptsMax, promoteAfter, waitMs, signal } = resolveUpdate(options);
  const { session, mutex } = updated;
  let lease: Lease | undefined;
  signal?.throwIfAborted();
  let seen = await updated.read();
  try {
    for (let attempts = 1; ; attempts += 1) {
      signal?.throwIfAborted();
      const value = await change(seen.value);
      signal?.throwIfAborted();
      const written = await updated.write(seen.version, value);
      if (written.ok) return { value, version: written.version };
      if (attempts >= attemptsMax) throw new ConflictError(mutex.name, { attempts, version: written.version });
      seen = written;
      if (lease !== undefined) continue; // only newcomers were in the way, and each of them is through
      if (attempts < promoteAfter) {
        const longestMs = Math.min(LONGEST_PAUSE_MS, PAUSE_MS * 2 ** (attempts - 1));
        await delay(session, mutex.name, session.runtime.random() * longestMs, signal);
      } else {
        lease = await mutex.acquire({ waitMs, ...(signal === undefined ? {} : { signal }) });
        seen = await updated.read();
      }
    }
  } finally {
    // The comparison is what protects the value: the mutex only kept others from trying in vain.
    await lease?.release().catch(() => {});
  }
}

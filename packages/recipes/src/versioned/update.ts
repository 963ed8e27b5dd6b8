/**
 * The loop of `Versioned.update`: reads, changes, compares and sets. After repeated conflicts, it uses a mutex,
 * so that such writers take turns.
 */
import type { Lease, Mutex } from "holdfast";
import { delay, type Session } from "holdfast/internal";
import { ConflictError } from "./errors.js";
import { resolveUpdate, type UpdateOptions } from "./options.js";
import type { VersionedValue, WriteOutcome } from "./values.js";

/** The value to update. */
export interface Updated<Value> {
  readonly session: Session;
  /** Serializes writers that had too many conflicts. */
  readonly mutex: Mutex;
  /** Reads the value and its version. */
  read(): Promise<VersionedValue<Value>>;
  /** Writes the value if it still has this version. */
  write(version: number, next: Value): Promise<WriteOutcome<Value>>;
}

/** Longest pause before the second attempt, in milliseconds. Doubles with each attempt, up to LONGEST_PAUSE_MS. */
const PAUSE_MS = 4;
const LONGEST_PAUSE_MS = 500;

/** Implements `Versioned.update`, which documents the parameters and errors. */
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
      if (lease !== undefined) continue; // the other writer did not hold the mutex and has finished, so do not pause
      if (attempts < promoteAfter) {
        const longestMs = Math.min(LONGEST_PAUSE_MS, PAUSE_MS * 2 ** (attempts - 1));
        await delay(session, mutex.name, session.runtime.random() * longestMs, signal);
      } else {
        lease = await mutex.acquire({ waitMs, ...(signal === undefined ? {} : { signal }) });
        seen = await updated.read();
      }
    }
  } finally {
    // A failed release needs no report: the version check protects the value, and the mutex only reduces conflicts.
    await lease?.release().catch(() => {});
  }
}

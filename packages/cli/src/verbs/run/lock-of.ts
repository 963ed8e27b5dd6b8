/** Creates the lock that the flags describe, in any format. */
import type { Holdfast, Lease, Lock } from "holdfast";
import type { Protocol } from "../../frame/flags.js";
import type { Connection } from "../../frame/verb.js";
import { dialectOf } from "../../listing/dialect.js";
import type { Shape } from "./flags.js";

/** A lock, and the facts about it that a child receives. */
export interface ChosenLock {
  readonly lock: Lock;
  readonly kind: string;
  readonly mode: "exclusive" | "shared";
  /** Whether the lock has another system's format. Such a lock has no comparable token, no queue and no pause. */
  readonly isForeign: boolean;
  /** With `-N`: the number of the permit that a lease holds. */
  slotOf(lease: Lease): number | undefined;
}

/** @throws CliError 64  a format that this topology or kind of lock does not support */
export async function lockOf(
  { holdfast, topology }: Connection,
  protocol: Protocol,
  name: string,
  shape: Shape,
): Promise<ChosenLock> {
  if (protocol.format === "timestamp") return await timestampLockOf(holdfast, protocol.dialect, name);
  if (protocol.format === "redisson") return await redissonLockOf(holdfast, name, shape);
  const exclusive = { mode: "exclusive", isForeign: false, slotOf: () => undefined } as const;
  if (topology === "redlock") return { ...exclusive, kind: "redlock", lock: holdfast.redlock(name) };
  if (shape === "mutex") return { ...exclusive, kind: "mutex", lock: holdfast.mutex(name) };
  if (shape === "read" || shape === "write") {
    const lock = holdfast.readWriteLock(name)[shape];
    return { ...exclusive, kind: "read-write-lock", mode: shape === "read" ? "shared" : "exclusive", lock };
  }
  const lock = holdfast.semaphore(name, { permits: shape.permits });
  return { ...exclusive, kind: "semaphore", lock, slotOf: firstSlot };
}

function firstSlot(lease: Lease): number | undefined {
  const { slots } = lease as { slots?: readonly number[] };
  return slots?.[0];
}

async function redissonLockOf(holdfast: Holdfast, name: string, shape: Shape): Promise<ChosenLock> {
  const { redisson } = await import("@holdfast/interop/redisson");
  const shared = redisson(holdfast);
  const foreign = { isForeign: true, slotOf: () => undefined } as const;
  if (shape === "mutex") return { ...foreign, kind: "redisson.lock", mode: "exclusive", lock: shared.lock(name) };
  const { read, write } = shared.readWriteLock(name);
  const kind = "redisson.read-write-lock";
  return shape === "read"
    ? { ...foreign, kind, mode: "shared", lock: read }
    : { ...foreign, kind, mode: "exclusive", lock: write };
}

async function timestampLockOf(holdfast: Holdfast, text: string, name: string): Promise<ChosenLock> {
  const { timestampLock } = await import("@holdfast/interop/timestamp");
  const lock = timestampLock(holdfast, name, await dialectOf(text));
  return { lock, kind: "timestamp", mode: "exclusive", isForeign: true, slotOf: () => undefined };
}

/**
 * Returns the default lease of a foreign format, or undefined if the format has none. Needs no connection, because
 * flags are checked before any request is sent.
 */
export async function usualLeaseMs(protocol: Protocol): Promise<number | undefined> {
  return protocol.format === "timestamp" ? (await dialectOf(protocol.dialect)).leaseMs : undefined;
}

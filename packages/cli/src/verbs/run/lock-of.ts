/** The lock that the flags mean, in whatever format. */
import type { Holdfast, Lease, Lock } from "holdfast";
import type { Protocol } from "../../frame/flags.js";
import type { Connection } from "../../frame/verb.js";
import { dialectOf } from "../../listing/dialect.js";
import type { Shape } from "./flags.js";

/** A lock, and what a child is told of it. */
export interface ChosenLock {
  readonly lock: Lock;
  readonly kind: string;
  readonly mode: "exclusive" | "shared";
  /** In another system's format: no token that means anything to others, no queue, no pause. */
  readonly isForeign: boolean;
  /** With `-N`: the number of the permit that a lease has. */
  slotOf(lease: Lease): number | undefined;
}

/** @throws CliError 64  a format that this topology or shape does not have */
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
 * The lease that is usual in that format, undefined for those that have no other than ours: known without a connection, since
 * flags are checked before anything is sent.
 */
export async function usualLeaseMs(protocol: Protocol): Promise<number | undefined> {
  return protocol.format === "timestamp" ? (await dialectOf(protocol.dialect)).leaseMs : undefined;
}

/** Formats locks for JSON documents: durations are `…Ms`, times are `…AtMs`, and unknown values are null. */
import { addressesOf } from "@holdfast/console/text";
import type { ShownLock } from "./found.js";

type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };

/** One lock of a list. `waiters` is the number of waiters. */
export function lockJson(lock: ShownLock): { readonly [key: string]: Json } {
  const { pause } = lock;
  const onServers = addressesOf(lock);
  return {
    name: lock.name,
    kind: lock.kind,
    state: lock.state,
    mode: lock.mode ?? null,
    token: lock.token ?? null,
    holders: lock.holders.map(holderJson),
    waiters: lock.waiterCount,
    permits: lock.permits === undefined ? null : { limit: lock.permits.limit ?? null, used: lock.permits.used },
    label: lock.label ?? null,
    pausedBy: pause?.by ?? null,
    pause:
      pause === undefined
        ? null
        : {
            by: pause.by,
            label: pause.label,
            sinceAtMs: pause.sinceAtMs,
            untilAtMs: pause.untilAtMs ?? null,
          },
    ...(lock.key === undefined ? {} : { key: lock.key }),
    ...(lock.unreadable === undefined ? {} : { unreadableKeys: lock.unreadable.keys }),
    ...(lock.unreadable?.reason === undefined ? {} : { unreadableReason: lock.unreadable.reason }),
    ...(lock.unreadable?.mayBeHeld ? { mayBeHeld: true } : {}),
    ...(lock.needsTopology === undefined ? {} : { needsTopology: lock.needsTopology }),
    ...(onServers.length === 0 ? {} : { onServers }),
    ...(lock.servers === undefined ? {} : { servers: lock.servers }),
    ...(lock.leader === undefined ? {} : { leader: { value: lock.leader.value, term: lock.leader.term } }),
    ...(lock.count === undefined ? {} : { count: { left: lock.count.left, initial: lock.count.initial } }),
    ...(lock.barrier === undefined
      ? {}
      : {
          barrier: {
            parties: lock.barrier.parties ?? null,
            generation: lock.barrier.generation,
            broken: lock.barrier.broken ?? null,
          },
        }),
  };
}

/** The waiters of a lock, as `show` lists them: `queue` has the first 100, starting with the next one. */
export function queueJson(lock: ShownLock): { readonly [key: string]: Json } {
  const conditions = lock.conditions.map(({ name, waiterCount, waiters }) => ({
    name,
    waiters: waiterCount,
    queue: waiters.map(waiterJson),
  }));
  return { queue: lock.waiters.map(waiterJson), ...(conditions.length === 0 ? {} : { conditions }) };
}

/** The facts that every holder has. */
interface KnownHolder {
  readonly owner: string;
  readonly host: string | undefined;
  readonly pid: number | undefined;
  readonly clientName: string | undefined;
  readonly token: number | undefined;
  readonly sinceAtMs: number | undefined;
  readonly leaseLeftMs: number;
  readonly label: string | undefined;
  readonly mode?: string;
  readonly permits?: number;
  readonly slots?: readonly number[];
  readonly goneSinceAtMs?: number | undefined;
}

/** One holder. `leaseLeftMs` is null for a key of another format without an expiry. */
export function holderJson(holder: KnownHolder): { readonly [key: string]: Json } {
  return {
    host: holder.host ?? null,
    pid: holder.pid ?? null,
    app: holder.clientName || null,
    owner: holder.owner,
    token: holder.token ?? null,
    sinceAtMs: holder.sinceAtMs ?? null,
    leaseLeftMs: Number.isFinite(holder.leaseLeftMs) ? holder.leaseLeftMs : null,
    label: holder.label ?? null,
    ...("goneSinceAtMs" in holder ? { goneSinceAtMs: holder.goneSinceAtMs ?? null } : {}),
    ...(holder.mode === undefined ? {} : { mode: holder.mode }),
    ...(holder.permits === undefined ? {} : { permits: holder.permits }),
    ...(holder.slots === undefined || holder.slots.length === 0 ? {} : { slots: holder.slots }),
  };
}

function waiterJson(waiter: ShownLock["waiters"][number]): Json {
  return {
    host: waiter.host ?? null,
    pid: waiter.pid ?? null,
    app: waiter.clientName || null,
    owner: waiter.owner,
    sinceAtMs: waiter.sinceAtMs ?? null,
    label: waiter.label ?? null,
    mode: waiter.mode,
    permits: waiter.permits,
    goneSinceAtMs: waiter.goneSinceAtMs ?? null,
  };
}

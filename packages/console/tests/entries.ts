/** Lock entries in the library's format, for tests of the views. */
import type { EntryHolder, LockEntry } from "holdfast/admin";

/** A free lock, with the given fields changed. */
export function entry(more: Partial<LockEntry> = {}): LockEntry {
  const { holders = [] } = more;
  return {
    ...{
      kind: "mutex",
      name: "lock",
      key: undefined,
      mode: undefined,
      token: holders[0]?.token,
      waiterCount: 0,
      waiters: [],
    },
    ...{
      permits: undefined,
      pause: undefined,
      label: undefined,
      conditions: [],
      leader: undefined,
      count: undefined,
      barrier: undefined,
    },
    state: holders.length > 0 ? "held" : "free",
    holders,
    ...more,
  };
}

/** A holder that belongs to a Holdfast client. */
export function holder(more: Partial<EntryHolder> = {}): EntryHolder {
  return {
    ...{
      owner: "ReH8GUZ6AOmR69do/1/30000/1",
      label: undefined,
      host: undefined,
      pid: undefined,
      clientName: undefined,
    },
    ...{
      token: 1_795_198_449_998_240,
      sinceAtMs: undefined,
      leaseLeftMs: 30_000,
      mode: "exclusive",
      permits: 1,
      slots: [],
      goneSinceAtMs: undefined,
    },
    ...more,
  };
}

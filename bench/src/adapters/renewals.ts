/** What the library sends to renew leases; asked of it, so that it is always what is sent. */
import { setTimeout as sleep } from "node:timers/promises";
import type { Reply, Script, Store } from "holdfast";
import type { Call } from "./scripts.js";

/** A lease that is long enough to be renewed together with others, and short enough that this is not long waited for. */
const LEASE_MS = 15_000;
const GIVE_UP_MS = 2 * LEASE_MS;
const LOOK_MS = 50;
/** What a server would answer: a renewal needs a token that looks like one. */
const TOKEN = 1_763_711_220_000_000;

/** One lease on the server, and the call that renews it alone. */
export interface LeaseCall extends Call {
  readonly lock: string;
  readonly fence: string;
  readonly owner: string;
  readonly token: string;
}

/** The renewals of the same leases, one by one and together. */
export interface Renewals {
  readonly leaseMs: number;
  readonly alone: readonly LeaseCall[];
  readonly together: readonly Call[];
}

/** Holds so many leases on a store that only listens, until each was renewed alone and together with others. */
export async function renewalsOf(leases: number): Promise<Renewals> {
  const { createHoldfast } = await import("holdfast");
  const alone: LeaseCall[] = [];
  const together: Call[] = [];
  const store: Store = {
    kind: "overheard",
    async run(script, keys, args): Promise<Reply> {
      if (script.name === "mutex/acquire") return TOKEN;
      if (script.name === "mutex/renew") together.push({ script, keys, args });
      if (script.name === "mutex/extend") alone.push(leaseCall(script, keys, args));
      return script.name === "mutex/renew" ? [1] : 1;
    },
    inbox: async () => ({ close: async () => {} }),
    onReconnect: () => () => {},
    close: async () => {},
  };
  const holdfast = createHoldfast({ store, allowEviction: true, leaseMs: LEASE_MS });
  const names = Array.from({ length: leases }, (_, i) => `held:${i}`);
  const held = await Promise.all(names.map((name) => holdfast.mutex(name).acquire()));
  const giveUpAtMs = performance.now() + GIVE_UP_MS;
  const keysOf = (calls: readonly Call[]): number => calls.reduce((sum, { keys }) => sum + keys.length, 0);
  while (keysOf(together) < 2 * leases && performance.now() < giveUpAtMs) await sleep(LOOK_MS);
  together.splice(together.findIndex((_, i) => keysOf(together.slice(0, i + 1)) >= 2 * leases) + 1);
  alone.splice(0);
  for (const lease of held) await lease.extend(LEASE_MS);
  await holdfast.close();
  if (keysOf(together) !== 2 * leases || alone.length !== leases)
    throw new Error(
      `${leases} leases were to be renewed once each way, not ${alone.length} and ${keysOf(together) / 2}`,
    );
  return { leaseMs: LEASE_MS, alone, together };
}

function leaseCall(script: Script, keys: readonly string[], args: readonly (string | number)[]): LeaseCall {
  const named = (names: readonly string[], values: readonly (string | number)[], name: string): string =>
    String(values[names.indexOf(name)]);
  return {
    ...{ script, keys, args },
    lock: named(script.keys, keys, "lock"),
    fence: named(script.keys, keys, "fence"),
    owner: named(script.args, args, "owner"),
    token: named(script.args, args, "token"),
  };
}

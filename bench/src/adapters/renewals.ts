/** The calls with which the library renews leases, recorded from the library so that they stay current. */
import { setTimeout as sleep } from "node:timers/promises";
import type { Reply, Script, Store } from "holdfast";
import type { Call } from "./scripts.js";

/** Long enough that leases are renewed together, and short enough that the renewal comes soon. */
const LEASE_MS = 15_000;
const GIVE_UP_MS = 2 * LEASE_MS;
const LOOK_MS = 50;
/** A plausible token, as a server would reply. A renewal needs one. */
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

/** Holds leases on a store that only records calls. Records the calls that renew each alone, and all of them together. */
export async function renewalsOf(leases: number): Promise<Renewals> {
  const { createHoldfast } = await import("holdfast");
  const alone = new Map<string, LeaseCall>();
  let largest: Call | undefined;
  const store: Store = {
    kind: "overheard",
    async run(script, keys, args): Promise<Reply> {
      if (script.name === "mutex/acquire") return TOKEN;
      if (script.name === "mutex/extend") {
        const call = leaseCall(script, keys, args);
        alone.set(call.lock, call);
      }
      if (script.name !== "mutex/renew") return 1;
      if (largest === undefined || keys.length > largest.keys.length) largest = { script, keys, args };
      return [1];
    },
    inbox: async () => ({ close: async () => {} }),
    onReconnect: () => () => {},
    close: async () => {},
  };
  const holdfast = createHoldfast({ store, allowEviction: true, leaseMs: LEASE_MS });
  const names = Array.from({ length: leases }, (_, i) => `held:${i}`);
  const held = await Promise.all(names.map((name) => holdfast.mutex(name).acquire()));
  const giveUpAtMs = performance.now() + GIVE_UP_MS;
  while (largest === undefined && performance.now() < giveUpAtMs) await sleep(LOOK_MS);
  for (const lease of held) await lease.extend(LEASE_MS);
  await holdfast.close();
  if (largest === undefined || alone.size !== leases) throw new Error("the leases were not renewed as expected");
  const calls = [...alone.values()];
  return { leaseMs: LEASE_MS, alone: calls, together: inRequests(calls, largest) };
}

/**
 * The requests that renew all of these leases together, each as large as the recorded one.
 *
 * @throws Error  the recorded request has other keys or arguments than one built here
 */
function inRequests(alone: readonly LeaseCall[], { script, keys, args }: Call): Call[] {
  const requestFor = (leases: readonly LeaseCall[]): Call => ({
    script,
    keys: leases.flatMap(({ lock, fence }) => [lock, fence]),
    args: [leases.map(({ owner, token }) => `${owner} ${token} ${LEASE_MS}`).join(" "), LEASE_MS],
  });
  const overheard = new Set(keys);
  const again = requestFor(alone.filter(({ lock }) => overheard.has(lock)));
  const wordsOf = (call: Pick<Call, "keys" | "args">): string =>
    [...call.keys, ...call.args].join(" ").split(" ").sort().join(" ");
  if (wordsOf(again) !== wordsOf({ keys, args })) throw new Error(`${script.name} has changed its keys or arguments`);
  const size = keys.length / 2;
  return Array.from({ length: Math.ceil(alone.length / size) }, (_, i) =>
    requestFor(alone.slice(i * size, (i + 1) * size)),
  );
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

/** Peers in other languages. `npm run bench` builds their programs from interop/peers and passes their locations on. */
import type { Adapter } from "./adapter.js";

/** A program that carries out orders, or the reason why it is missing. */
export type ForeignProgram = { readonly program: readonly string[] } | { readonly missing: string };

const ELSEWHERE = "built only by `npm run bench`";

/** The program of a peer. */
export function programOf({ name }: Adapter): ForeignProgram {
  // Only scripts/bench.mjs sets this variable.
  const known = JSON.parse(process.env.HOLDFAST_BENCH_PEERS ?? "{}") as Readonly<Record<string, ForeignProgram>>;
  return known[name] ?? { missing: ELSEWHERE };
}

/** Redisson, in Java. */
export const redisson: Adapter = foreign({
  name: "redisson",
  version: "4.7.0",
  settings: "Java, getFencedLock: lockAndGetToken and unlock, lockWatchdogTimeout is the lease, otherwise defaults",
  hasToken: true,
});

/** rueidislock, in Go. */
export const rueidislock: Adapter = foreign({
  name: "rueidislock",
  version: "1.0.79",
  settings: "Go, one key (KeyMajority 1), NoLoopTracking, KeyValidity is the lease, otherwise defaults",
});

function foreign(facts: Pick<Adapter, "name" | "version" | "settings" | "hasToken">): Adapter {
  return {
    role: "peer",
    client: "its own client",
    isForeign: true,
    ...facts,
    open: () => Promise.reject(new Error(`${facts.name} is a separate program`)),
  };
}

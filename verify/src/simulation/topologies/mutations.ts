/** Deliberate mistakes in the code for several servers, each of which the simulation must find. */
import type { Reply, Store } from "holdfast";
import { rewrite, rewriteAll } from "../mutations/mutation.js";
import type { Tampering } from "../tampering.js";
import type { Topology } from "./plan.js";

/** A mistake. */
export interface TopologyMutation {
  readonly name: string;
  readonly topology: Topology;
  /** The kind of lock, with replicas; absent for a mutex. */
  readonly kind?: string;
  /** The first known seed that finds it, where a search may begin. */
  readonly seed: number;
  /** Properties, of which at least one is violated. */
  readonly finds: readonly string[];
  readonly tampering: Tampering;
}

/** All mistakes. */
export const TOPOLOGY_MUTATIONS: readonly TopologyMutation[] = [
  {
    name: "a server votes for one while it holds for another, so that a minority is enough",
    topology: "quorum",
    seed: 1,
    finds: ["S2", "F1"],
    tampering: rewrite("redlock/acquire", [
      "return {1, redis.call('PTTL', KEYS[1])}",
      "return {0, redis.call('INCR', KEYS[2])}",
    ]),
  },
  {
    name: "a release is sent once, and not again if no reply came",
    topology: "quorum",
    seed: 17,
    finds: ["L4"],
    tampering: { store: (store) => withoutSecondReleases(store) },
  },
  {
    name: "a server that lost its memory waits for the longest lease that it is told of, and the others are not asked",
    topology: "quorum",
    seed: 5,
    finds: ["S2"],
    tampering: rewrite("server/lineage", ["place == 'voter' and marker[7] ~= run and heard ~= run", "false"]),
  },
  {
    name: "the quiet time is half as long as the longest lease",
    topology: "replicas",
    seed: 43,
    finds: ["S1", "S2"],
    tampering: rewrite("server/lineage", [
      "return math.max(0, math.min(longestMs, sinceMs + longestMs - nowMs)), sinceMs",
      "return math.max(0, math.min(longestMs, sinceMs + longestMs / 2 - nowMs)), sinceMs",
    ]),
  },
  {
    name: "a server that took over counts as the one before it",
    topology: "replicas",
    seed: 3,
    finds: ["S1", "S2"],
    tampering: rewrite("server/lineage", [
      "if settled == run then\n    return 0, nowMs",
      "if settled then\n    return 0, nowMs",
    ]),
  },
  {
    name: "if replicas get scripts too, a granting script runs on any server that has it",
    topology: "replicas",
    seed: 63,
    finds: ["S1", "S2"],
    tampering: rewriteAll(["if not redis.REDIS_VERSION_NUM and", "if false and"]),
  },
  {
    name: "holders restore nothing",
    topology: "replicas",
    seed: 2,
    finds: ["S1"],
    tampering: { store: (store) => ({ ...store, lineageKey: () => undefined }) },
  },
  ...["semaphore", "read-write-lock"].map((kind) => ({
    name: `a restored lease does not count: ${kind}`,
    topology: "replicas" as const,
    kind,
    seed: 18,
    finds: ["X1", "X2"],
    tampering: rewrite("permits/reclaim", ["used = used + weight", "used = used + 0"]),
  })),
];

/** A store that sends each release once, and then reports it as answered. */
function withoutSecondReleases(store: Store): Store {
  const given = new Set<string>();
  return {
    ...store,
    run(script, keys, args, timeoutMs): Promise<Reply> {
      const owner = String(args[0]);
      if (script.name !== "redlock/release") return store.run(script, keys, args, timeoutMs);
      if (given.has(owner)) return Promise.resolve(UNHELD);
      given.add(owner);
      return store.run(script, keys, args, timeoutMs);
    },
  };
}

/** The reply of a server to the release of a lock that is not held. */
const UNHELD: Reply = [2];

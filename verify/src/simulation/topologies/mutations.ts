/** Mistakes on purpose in what several servers are for, each of which the simulation must find. */
import { rewrite } from "../mutations/mutation.js";
import type { Tampering } from "../tampering.js";
import type { Topology } from "./plan.js";

/** One mistake. */
export interface TopologyMutation {
  readonly name: string;
  readonly topology: Topology;
  /** The first seed that finds it, as far as is known: a search may begin here. */
  readonly seed: number;
  /** Properties of which one is violated. */
  readonly finds: readonly string[];
  readonly tampering: Tampering;
}

/** All of them. */
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
];

/** Rules for leases of different lengths on a quorum with restarts (docs/adr/131-longest-lease-on-a-quorum.md). */
import { type LengthsSetting, LengthsWorld } from "./lengths-world.js";
import { type Rule, rulesOf } from "./rule.js";

/** Clients with leases of these lengths in ticks, and servers that may restart `restarts` times. */
export function lengths(leases: readonly number[], restarts: number, servers: number = 3): LengthsSetting {
  return { leases, servers, restarts };
}

const { script, client } = rulesOf(LengthsWorld, "Q8");

/** The rules for leases of different lengths on a quorum. */
export const LENGTHS_RULES: readonly Rule[] = [
  script(
    "others-are-asked",
    "a server that lost its memory waits until others have reported the lease lengths",
    lengths([2, 1], 1),
    {
      script: "server/lineage",
      from: "place == 'voter' and marker[7] ~= run and heard ~= run",
      to: "false",
    },
  ),
  client("ask-a-majority", "for a server that lost its memory, a majority that remembers is asked", lengths([2, 1], 1)),
  client("ask-after-the-restart", "the others are asked after its restart", lengths([2, 1], 1)),
  client("tell-first", "servers are told the length of a lease before any of them is asked for it", lengths([2, 1], 1)),
  client("count-who-was-told", "a vote counts only if its server was told in the same run", lengths([2, 1], 2)),
];

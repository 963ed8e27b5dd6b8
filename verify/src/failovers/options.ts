/** The options of a failover run. */
import { parseArgs } from "node:util";

/** See `HELP`. */
export interface Options {
  readonly topologies: readonly ("sentinel" | "cluster")[];
  readonly count: number;
  readonly grace: "auto" | "off";
  readonly seed: number;
  readonly leaseMs: number;
  /** The file for the sums as JSON. */
  readonly json: string | undefined;
}

export const HELP = `npm run verify:failovers -- [options]

Kills masters with grants that their replicas never received, while several processes hold and wait.

  --topology sentinel|cluster   one topology (both)
  --count N                     failovers of each topology, 1 to 1000 (10)
  --grace auto|off              the option failoverGrace; with off, the run must show double grants (auto)
  --seed N                      the seed for random choices: how long locks are held, when masters die (1)
  --lease MS                    the lease length, 1000 to 60000 (6000)
  --json FILE                   also writes the sums to this file
`;

/** @throws RangeError, TypeError  invalid option */
export function optionsOf(words: readonly string[]): Options | "help" {
  const { values } = parseArgs({
    args: [...words],
    options: {
      topology: { type: "string" },
      count: { type: "string", default: "10" },
      grace: { type: "string", default: "auto" },
      seed: { type: "string", default: "1" },
      lease: { type: "string", default: "6000" },
      json: { type: "string" },
      help: { type: "boolean", default: false },
    },
  });
  if (values.help) return "help";
  const { topology, grace } = values;
  if (topology !== undefined && topology !== "sentinel" && topology !== "cluster") {
    throw new RangeError(`--topology must be sentinel or cluster; got ${topology}`);
  }
  if (grace !== "auto" && grace !== "off") throw new RangeError(`--grace must be auto or off; got ${grace}`);
  return {
    topologies: topology === undefined ? ["sentinel", "cluster"] : [topology],
    count: whole("--count", values.count, 1, 1_000),
    grace,
    seed: whole("--seed", values.seed, 0, 2 ** 31),
    leaseMs: whole("--lease", values.lease, 1_000, 60_000),
    json: values.json,
  };
}

function whole(option: string, text: string, least: number, most: number): number {
  const value = Number(text);
  if (Number.isInteger(value) && value >= least && value <= most) return value;
  throw new RangeError(`${option} must be a whole number from ${least} to ${most}; got ${text}`);
}

import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import type { Adapter } from "./adapters/adapter.js";
import { ADAPTERS } from "./adapters/all.js";
import { CURVES, type CurvePlan } from "./curves/all.js";
import { MEASUREMENTS } from "./measurements/all.js";
import type { Measurement } from "./measurements/measurement.js";
import { WORKLOADS, type Workload } from "./profiles/workloads.js";

const DOCS = fileURLToPath(new URL("../docs", import.meta.url));

/** The parsed command line. */
export interface Arguments {
  readonly help: boolean;
  readonly json: boolean;
  readonly writeDocs: boolean;
  /** Empty unless `--curves` is given. */
  readonly curves: readonly CurvePlan[];
  /** Empty unless `--profile` is given. */
  readonly profiles: readonly Workload[];
  /** Whether the steps of a hand-over are measured, and nothing else. */
  readonly moments: boolean;
  /** Whether simultaneous timeouts are measured, and nothing else. */
  readonly timeouts: boolean;
  /** Folder that documents are written to. */
  readonly docsFolder: string;
  readonly measurements: readonly Measurement[];
  readonly adapters: readonly Adapter[];
  /** Length of one run. If absent, each measurement uses its own. */
  readonly seconds: number | undefined;
  readonly repetitions: number;
  readonly callers: number;
  readonly leases: number;
  readonly waiters: number;
  readonly autoPipelining: boolean;
}

/** Shown by `--help`. */
export const USAGE: string = `npm run bench -- [options]
  --server LIST       servers of the platform matrix, such as valkey or redis-7.0,valkey-9.1; valkey is the newest Valkey.
                      Several servers are shown side by side (default: the installed redis-server)
  --goals             with --server: print a table that shows which servers reached each target. With --write-docs,
                      also replace the table in docs/benchmarks.md
  --runs N            with --goals: runs on each server, in turn; a target counts as reached if every run reached it
                      (default: 1)
  --only LIST         measurements: ${names(MEASUREMENTS)} (default: all);
                      with --curves: ${names(CURVES)};
                      with --profile: ${names(WORKLOADS)}
  --adapters LIST     contestants: ${names(ADAPTERS)} (default: all)
  --seconds N         length of one run, 0.1 to 600 (default: depends on the measurement)
  --repetitions N     runs of each contestant, 1 to 1000 (default: 5)
  --callers N         callers per process on the hot key, 1 to 100000 (default: 100)
  --waiters N         callers in the larger of the two crowds, 2 to 100000 (default: 10000)
  --leases N          leases held at the same time, 1 to 1000000 (default: 100000)
  --auto-pipelining   turn on enableAutoPipelining of ioredis for all contestants that use ioredis (default: off)
  --json              print JSON; the exit code is 1 if a target was missed
  --write-docs        write bench/docs/benchmarks.md with its pictures and numbers (with --curves, --profile or --moments:
                      only that part)
  --docs-folder PATH  write to this folder instead of bench/docs
  --help              print this

Instead of the measurements:
  --curves            how speed and cost grow with waiters, processes, held leases and masters
  --profile           processor time by whose code used it
  --moments           the time of each step of a hand-over between processes
  --timeouts          how long 5000 callers that time out together stall their process

Separate the items of a list with commas.`;

/** @throws RangeError, TypeError  an argument is invalid; the message names it, the allowed values and the given value */
export function parseArguments(words: readonly string[]): Arguments {
  const { values } = parseArgs({
    args: [...words],
    options: {
      only: { type: "string" },
      adapters: { type: "string" },
      seconds: { type: "string" },
      repetitions: { type: "string", default: "5" },
      callers: { type: "string", default: "100" },
      waiters: { type: "string", default: "10000" },
      leases: { type: "string", default: "100000" },
      "auto-pipelining": { type: "boolean", default: false },
      curves: { type: "boolean", default: false },
      profile: { type: "boolean", default: false },
      moments: { type: "boolean", default: false },
      timeouts: { type: "boolean", default: false },
      json: { type: "boolean", default: false },
      "write-docs": { type: "boolean", default: false },
      "docs-folder": { type: "string", default: DOCS },
      help: { type: "boolean", default: false },
    },
  });
  // A document with only some of the results would look complete. Curves are independent of each other.
  const isPart = values.adapters !== undefined || (values.only !== undefined && !values.curves);
  if (values["write-docs"] && isPart)
    throw new RangeError("--write-docs needs all results; leave out --only (unless with --curves) and --adapters");
  const others = (["curves", "profile", "moments", "timeouts"] as const)
    .filter((other) => values[other])
    .map((other) => `--${other}`);
  if (others.length > 1) throw new RangeError(`${others.join(" and ")} are separate runs; give one of them`);
  for (const whole of ["moments", "timeouts"] as const)
    if (values[whole] && (values.only ?? values.adapters) !== undefined)
      throw new RangeError(`--${whole} has nothing to choose from; leave out --only and --adapters`);
  if (values.timeouts && values["write-docs"]) throw new RangeError("--timeouts writes no document");
  const isMeasured = others.length === 0;
  return {
    docsFolder: values["docs-folder"],
    help: values.help,
    json: values.json,
    writeDocs: values["write-docs"],
    curves: values.curves ? chosen("--only", values.only, CURVES) : [],
    moments: values.moments,
    timeouts: values.timeouts,
    profiles: values.profile ? chosen("--only", values.only, WORKLOADS) : [],
    measurements: isMeasured ? chosen("--only", values.only, MEASUREMENTS) : [],
    adapters: chosen("--adapters", values.adapters, ADAPTERS),
    seconds: values.seconds === undefined ? undefined : number("--seconds", values.seconds, 0.1, 600),
    repetitions: whole("--repetitions", values.repetitions, 1, 1_000),
    callers: whole("--callers", values.callers, 1, 100_000),
    waiters: whole("--waiters", values.waiters, 2, 100_000),
    leases: whole("--leases", values.leases, 1, 1_000_000),
    autoPipelining: values["auto-pipelining"],
  };
}

function chosen<Choice extends { readonly name: string }>(
  option: string,
  list: string | undefined,
  choices: readonly Choice[],
): readonly Choice[] {
  if (list === undefined) return choices;
  return [...new Set(list.split(","))].map((word) => {
    const choice = choices.find(({ name }) => name === word);
    if (choice === undefined)
      throw new RangeError(`${option} must be one or more of ${names(choices)}; got ${JSON.stringify(word)}`);
    return choice;
  });
}

function number(option: string, word: string, min: number, max: number): number {
  const value = word.trim() === "" ? Number.NaN : Number(word);
  if (!(value >= min && value <= max))
    throw new RangeError(`${option} must be a number from ${min} to ${max}; got ${JSON.stringify(word)}`);
  return value;
}

function whole(option: string, word: string, min: number, max: number): number {
  const value = number(option, word, min, max);
  if (!Number.isInteger(value))
    throw new RangeError(`${option} must be a whole number from ${min} to ${max}; got ${JSON.stringify(word)}`);
  return value;
}

function names(choices: readonly { readonly name: string }[]): string {
  return choices.map(({ name }) => name).join(", ");
}

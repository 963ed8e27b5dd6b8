/**
 * The server time of a free mutex's scripts, part by part. All lines send the same keys and arguments, and each does a
 * little more, from two empty scripts to the real ones. The time of two empty scripts is the minimum for any lock with
 * scripts.
 */
import type { Redis } from "ioredis";
import { type Call, callsOfAPair } from "../adapters/scripts.js";
import type { Conditions } from "../measurements/entry.js";
import type { Spent } from "./spent.js";

/** Enough locks in parallel to keep the server busy. */
const PARALLEL = 32;
const RAW = "raw";
const COMPARE_AND_DELETE =
  "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0";

const LEASE = "redis.call('PSETEX', KEYS[1], ARGV[2], ARGV[1])";
const TOKEN = "redis.call('SET', KEYS[2], '1763711220000000', 'PX', ARGV[3], 'GET')";
const ifFree = (body: string): string =>
  `if redis.call('EXISTS', KEYS[1], KEYS[3]) == 0 then ${body} return 1 end return 0`;
const RELEASE_UNQUEUED =
  "if redis.call('GET', KEYS[1]) == ARGV[1] and redis.call('EXISTS', KEYS[3]) == 0 then redis.call('DEL', KEYS[1]) end return 1";

/** Acquire and release of each part. Empty strings stand for the real scripts. */
const PARTS: Readonly<Record<string, readonly [string, string]>> = {
  "two empty scripts": ["return 1", "return 1"],
  "and a lease": [`${LEASE} return 1`, COMPARE_AND_DELETE],
  "and a look at the queue": [ifFree(LEASE), RELEASE_UNQUEUED],
  "and a token": [ifFree(`${TOKEN} ${LEASE}`), RELEASE_UNQUEUED],
  "and the time in it": ["", ""],
};

/** The names of the parts, after that of the yardstick. */
export const SERVER_PARTS: readonly string[] = [RAW, ...Object.keys(PARTS)];

/** Runs pairs of one part for the given time. @throws Error  the server refused a command */
export async function spentOnServer(name: string, { server, seconds, connection }: Conditions): Promise<Spent> {
  const { control } = server;
  const [acquire, release] = await callsOfAPair();
  const pair =
    name === RAW ? await rawPair(control, connection.leaseMs) : await pairOf(control, name, acquire, release);
  await control.config("RESETSTAT");
  const untilMs = performance.now() + seconds * 1_000;
  let operations = 0;
  for (; performance.now() < untilMs; operations += PARALLEL) {
    for (const add of pair) {
      const pipeline = control.pipeline();
      for (let lock = 0; lock < PARALLEL; lock += 1) add(pipeline, lock, operations + lock);
      for (const [error] of (await pipeline.exec()) ?? []) if (error !== null) throw error;
    }
  }
  const us = timesOf(await control.info("commandstats"));
  // The time of a script includes the commands that it calls. Only the yardstick sends a plain command.
  return { operations, profiles: [], serverUs: (us.get("evalsha") ?? 0) + (name === RAW ? (us.get("set") ?? 0) : 0) };
}

/** Adds one half of the pair on a lock to a pipeline. */
type Half = (pipeline: ReturnType<Redis["pipeline"]>, lock: number, nth: number) => void;

async function rawPair(control: Redis, leaseMs: number): Promise<readonly [Half, Half]> {
  const sha1 = String(await control.script("LOAD", COMPARE_AND_DELETE));
  const owner = (nth: number): string => `an owner of the usual length ${nth}`;
  return [
    (pipeline, lock, nth) => void pipeline.set(`raw:${lock}`, owner(nth), "PX", leaseMs, "NX"),
    (pipeline, lock, nth) => void pipeline.evalsha(sha1, 1, `raw:${lock}`, owner(nth)),
  ];
}

async function pairOf(control: Redis, name: string, acquire: Call, release: Call): Promise<readonly [Half, Half]> {
  const [first = "", second = ""] = PARTS[name] ?? [];
  const half = async ({ script, keys, args }: Call, source: string): Promise<Half> => {
    const sha1 = String(await control.script("LOAD", source === "" ? script.source : source));
    return (pipeline, lock, nth) => {
      const own = keys.map((key) => key.replace("}", `:${lock}}`));
      const given = args.map((arg, i) => (script.args[i] === "owner" ? `${arg}:${nth}` : arg));
      pipeline.evalsha(sha1, own.length, ...own, ...given);
    };
  };
  return [await half(acquire, first), await half(release, second)];
}

function timesOf(info: string): ReadonlyMap<string, number> {
  const lines = info.matchAll(/^cmdstat_([^:]+):calls=\d+,usec=(\d+)/gm);
  return new Map(Array.from(lines, ([, command = "", us]) => [command, Number(us)]));
}

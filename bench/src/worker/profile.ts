/**
 * Where the processor time of a worker goes: a sampling profile, summed by whose code ran.
 *
 * Native code called from a JavaScript function counts for that function. The rest is the event loop, which here is mostly
 * the kernel reading and writing sockets.
 */
import { type Profiler, Session } from "node:inspector/promises";
import type { Profile, Profiled, Share } from "./orders.js";

/** Long compared with the cost of a sample. */
const INTERVAL_US = 200;
const HEAVIEST = 12;
const IDLE = "(idle)";
const COLLECTOR = "(garbage collector)";
const CLIENTS =
  /\/node_modules\/(?:ioredis|iovalkey|@redis|redis|redis-parser|redis-errors|@valkey|denque|standard-as-callback|cluster-key-slot)\//;

/** Does `work` and returns its result with a profile. */
export async function profiled<Result>(work: () => Promise<Result>): Promise<Profiled<Result>> {
  const session = new Session();
  session.connect();
  try {
    await session.post("Profiler.enable");
    await session.post("Profiler.setSamplingInterval", { interval: INTERVAL_US });
    await session.post("Profiler.start");
    const result = await work();
    const { profile } = await session.post("Profiler.stop");
    return { result, profile: summed(profile) };
  } finally {
    session.disconnect();
  }
}

/** Sums a V8 profile by whose code ran. Times are in µs. */
export function summed({ nodes, samples = [], timeDeltas = [] }: Profiler.Profile): Profile {
  const shares = new Map<number, { share: Share; name: string }>();
  for (const { id, callFrame } of nodes) {
    const { functionName, url } = callFrame;
    shares.set(id, { share: shareOf(functionName, url), name: `${functionName || "(anonymous)"} ${file(url)}`.trim() });
  }
  const us: Record<Share, number> = { library: 0, client: 0, node: 0, loop: 0, collector: 0, bench: 0 };
  const own = new Map<string, number>();
  for (const [i, id] of samples.entries()) {
    const at = shares.get(id);
    const tookUs = timeDeltas[i] ?? 0;
    if (at === undefined || at.name === IDLE) continue;
    us[at.share] += tookUs;
    if (at.share === "library") own.set(at.name, (own.get(at.name) ?? 0) + tookUs);
  }
  const heaviest = [...own].toSorted(([, a], [, b]) => b - a).slice(0, HEAVIEST);
  return { us, heaviest: heaviest.map(([name, tookUs]) => ({ name, us: tookUs })) };
}

function shareOf(functionName: string, url: string): Share {
  if (functionName === COLLECTOR) return "collector";
  if (url.startsWith("node:")) return "node";
  if (url === "") return functionName.startsWith("(") ? "loop" : "node";
  if (url.includes("/bench/dist/")) return "bench";
  return CLIENTS.test(url) ? "client" : "library";
}

function file(url: string): string {
  return url.split("/").at(-1) ?? "";
}

/** Reads the marker of a server without writing it, so that an examination never starts a quiet time. */
import type { LineageFacts } from "../facts.js";
import { numberIn } from "../facts.js";
import type { Link } from "./link.js";

/** Undefined if the server does not show its run id. @throws Error  the marker may not be read */
export async function readLineage({ redis, info, place, isPrimary }: Link): Promise<LineageFacts | undefined> {
  const process = info.get("run_id");
  const former = info.get("master_replid2");
  if (!isPrimary || process === undefined || former === undefined) return undefined;
  // Same rule as in lua/run-id.lua: a promotion begins a new run.
  const isPromoted = /[^0]/.test(former);
  const [[seconds = 0, micros = 0], marker] = await Promise.all([
    redis.call("TIME").then((time) => (time as unknown[]).map(Number)),
    redis.call("HMGET", place.marker, "run", "pending", "sinceMs", "longestMs", "beforeMs", "heard"),
  ]);
  const [run, pending, sinceMs, longestMs, beforeMs, heard] = marker as (string | null)[];
  const isKept = run !== null || pending !== null || longestMs !== null;
  return {
    run: isPromoted ? `${process}/${info.get("master_replid") ?? ""}` : process,
    isPromoted,
    upMs: (numberIn(info, "uptime_in_seconds") ?? 0) * 1_000,
    nowMs: seconds * 1_000 + Math.floor(micros / 1_000),
    ...(isKept
      ? {
          marker: {
            ...(run == null ? {} : { run }),
            ...(pending == null ? {} : { pending }),
            ...(heard == null ? {} : { heard }),
            sinceMs: Number(sinceMs ?? 0),
            longestMs: Math.max(Number(longestMs ?? 0), Number(beforeMs ?? 0)),
          },
        }
      : {}),
  };
}

/** Detects the quiet time after a failover or a restart, in which a server grants no new locks. */
import type { GraceView } from "./api.js";
import type { Backend, ServerClient } from "./backend.js";

/**
 * The grace that ends last; null if there is none, or no server to ask. Never rejects, so that the rest of a read can
 * succeed.
 */
export async function readGrace(backend: Backend, nowMs: number): Promise<GraceView | null> {
  const graces = await Promise.all(
    backend.servers().map((server) => graceOf(server, backend.prefix, nowMs).catch(() => null)),
  );
  return graces.reduce((last, one) => ((one?.untilAtMs ?? 0) > (last?.untilAtMs ?? 0) ? one : last), null);
}

/** Reads the marker of a grace, a hash; packages/holdfast/docs/keys.md describes its fields. */
async function graceOf(server: ServerClient, prefix: string, nowMs: number): Promise<GraceView | null> {
  const fields = ["run", "pending", "sinceMs", "longestMs", "beforeMs"];
  const [run, pending, since, longest, before] = (await server.call(
    "HMGET",
    `${prefix}:lineage`,
    ...fields,
  )) as unknown[];
  if (typeof pending !== "string" || pending === "" || pending === run) return null;
  const sinceAtMs = Number(since);
  // `Math.min` keeps a clock that was set back from extending the grace.
  const untilAtMs = Math.min(nowMs, sinceAtMs) + Math.max(Number(longest), Number(before));
  if (!(untilAtMs > nowMs)) return null;
  const cause =
    "The server was restarted or took over from another, and leases that it may have forgotten must end first.";
  return { sinceAtMs, untilAtMs, cause };
}

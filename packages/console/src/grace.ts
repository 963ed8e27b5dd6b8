/** Whether a server keeps quiet after a failover or a restart: until then it grants nothing new, and everybody asks why. */
import type { GraceView } from "./api.js";
import type { Backend, ServerClient } from "./backend.js";

/** The grace that ends last; null if there is none, or no server to ask. Never rejects: the rest of the look matters more. */
export async function readGrace(backend: Backend, nowMs: number): Promise<GraceView | null> {
  const graces = await Promise.all(
    backend.servers().map((server) => graceOf(server, backend.prefix, nowMs).catch(() => null)),
  );
  return graces.reduce((last, one) => ((one?.untilAtMs ?? 0) > (last?.untilAtMs ?? 0) ? one : last), null);
}

/** The marker is a hash; packages/holdfast/docs/keys.md says what its fields mean. */
async function graceOf(server: ServerClient, prefix: string, nowMs: number): Promise<GraceView | null> {
  const fields = ["run", "pending", "sinceMs", "longestMs", "beforeMs"];
  const [run, pending, since, longest, before] = (await server.call(
    "HMGET",
    `${prefix}:lineage`,
    ...fields,
  )) as unknown[];
  if (typeof pending !== "string" || pending === "" || pending === run) return null;
  const sinceAtMs = Number(since);
  // A clock that was set back makes it no longer.
  const untilAtMs = Math.min(nowMs, sinceAtMs) + Math.max(Number(longest), Number(before));
  if (!(untilAtMs > nowMs)) return null;
  const cause =
    "The server was restarted or took over from another, and leases that it may have forgotten must end first.";
  return { sinceAtMs, untilAtMs, cause };
}

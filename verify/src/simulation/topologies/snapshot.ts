/** The data of a server at one instant, and how to restore it on another one. */
import type { DumpedKey, Keyspace } from "@holdfast/embedded";

/** Expiry times are on the clock of the source; Infinity without expiry. */
export type Snapshot = readonly (DumpedKey & { readonly endsAtMs: number })[];

const PUT = `
local kind = ARGV[1]
for at = 3, #ARGV do
  if kind == 'string' then redis.call('SET', KEYS[1], ARGV[at])
  elseif kind == 'list' then redis.call('RPUSH', KEYS[1], ARGV[at])
  elseif kind == 'set' then redis.call('SADD', KEYS[1], ARGV[at])
  elseif at % 2 == 1 then
    if kind == 'hash' then redis.call('HSET', KEYS[1], ARGV[at], ARGV[at + 1])
    else redis.call('ZADD', KEYS[1], ARGV[at + 1], ARGV[at]) end
  end
end
if ARGV[2] ~= '-' then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
return 0`;

/**
 * Replaces the data of the server. Keys that have expired on its own clock are omitted.
 *
 * @param nowMs  the time on the clock of the target
 */
export function restore(keyspace: Keyspace, snapshot: Snapshot, nowMs: number): void {
  keyspace.clear();
  for (const { key, type, value, endsAtMs } of snapshot) {
    const leftMs = Math.floor(endsAtMs - nowMs);
    if (leftMs <= 0) continue;
    const list = typeof value === "string" ? [value] : value;
    // Completes immediately, because the interpreter is already loaded.
    void keyspace.eval(PUT, [key], [type, Number.isFinite(leftMs) ? leftMs : "-", ...list]);
  }
}

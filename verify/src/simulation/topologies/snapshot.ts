/** What a server holds at one instant, and how another one comes to hold it. */
import type { DumpedKey, Keyspace } from "@holdfast/embedded";

/** Ends are by the clock of the server from which it comes; Infinity without one. */
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
 * The server holds that, and nothing else. What is over by its own clock is not there.
 *
 * @param nowMs  by the clock of the server that gets it
 */
export function restore(keyspace: Keyspace, snapshot: Snapshot, nowMs: number): void {
  keyspace.clear();
  for (const { key, type, value, endsAtMs } of snapshot) {
    const leftMs = Math.floor(endsAtMs - nowMs);
    if (leftMs <= 0) continue;
    const list = typeof value === "string" ? [value] : value;
    // Done before anything else happens, since the interpreter is there.
    void keyspace.eval(PUT, [key], [type, Number.isFinite(leftMs) ? leftMs : "-", ...list]);
  }
}

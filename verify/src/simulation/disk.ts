/** The data that a server without immediate persistence has on disk after a crash. */
import type { Keyspace } from "@holdfast/embedded";

/** The disk of a server. */
export class Disk {
  readonly #keyspace: Keyspace;
  #snapshot: ReturnType<Keyspace["dump"]> = [];

  constructor(keyspace: Keyspace) {
    this.#keyspace = keyspace;
  }

  /** Saves the server's memory. */
  write(): void {
    this.#snapshot = this.#keyspace.dump();
  }

  /** Restores the last saved memory, or empties it. */
  async comeBack(keeps: "some" | "none"): Promise<void> {
    this.#keyspace.clear();
    if (keeps === "none") return;
    for (const { key, type, value, leftMs } of this.#snapshot) {
      const list = typeof value === "string" ? [value] : value;
      await this.#keyspace.eval(RESTORE, [key], [type, leftMs, ...list]);
    }
  }
}

const RESTORE = `
local kind, leftMs = ARGV[1], tonumber(ARGV[2])
for at = 3, #ARGV do
  if kind == 'string' then redis.call('SET', KEYS[1], ARGV[at])
  elseif kind == 'list' then redis.call('RPUSH', KEYS[1], ARGV[at])
  elseif kind == 'set' then redis.call('SADD', KEYS[1], ARGV[at])
  elseif at % 2 == 1 then
    if kind == 'hash' then redis.call('HSET', KEYS[1], ARGV[at], ARGV[at + 1])
    else redis.call('ZADD', KEYS[1], ARGV[at + 1], ARGV[at]) end
  end
end
if leftMs >= 0 then redis.call('PEXPIRE', KEYS[1], leftMs) end
return 0`;

/** Makes sure that a failover loses nothing written before it. */
import type { RedisServer } from "../../../../tests/support/redis-server.js";
import { until } from "../../src/testing/delays.js";

/**
 * Resolves when all replicas have what the master has now. The master may keep writing, because sentinels publish on
 * it. The offsets that replicas report are up to a second old.
 */
export async function replicated(master: Pick<RedisServer, "command">): Promise<void> {
  const told = async (): Promise<{ mine: number; others: number[] }> => {
    const info = String(await master.command("INFO", "replication"));
    const others = [...info.matchAll(/slave\d+:.*offset=(\d+)/g)].map(([, offset]) => Number(offset));
    return { mine: Number(/master_repl_offset:(\d+)/.exec(info)?.[1]), others };
  };
  const { mine } = await told();
  await until(async () => {
    const { others } = await told();
    return others.length > 0 && others.every((offset) => offset >= mine);
  }, "the replicas to have all");
}

/** Reads slow commands, and which users could empty the database. */
import type { SlowCommand, SlowFacts } from "../facts.js";
import type { Link } from "./link.js";

const MOST_ENTRIES = 128;
const SCRIPTS = /^(eval|evalsha|eval_ro|evalsha_ro|fcall|fcall_ro)$/;

/** @throws Error  SLOWLOG is refused */
export async function readSlow({ redis }: Link): Promise<SlowFacts> {
  const [log, latest] = await Promise.all([
    redis.call("SLOWLOG", "GET", MOST_ENTRIES),
    redis.call("LATENCY", "LATEST").catch(() => []),
  ]);
  const entries = (log as unknown[][]).map(([, atS, micros, words]): SlowCommand => {
    const command = String((words as unknown[])[0]).toLowerCase();
    return { atMs: Number(atS) * 1_000, tookMs: Number(micros) / 1_000, command, isScript: SCRIPTS.test(command) };
  });
  const spikes = (latest as unknown[][]).map(([event, atS, , worstMs]) => ({
    event: String(event),
    atMs: Number(atS) * 1_000,
    worstMs: Number(worstMs),
  }));
  return { entries, spikes };
}

/** The ACL categories and commands that include FLUSHALL and FLUSHDB. */
const WITH_FLUSH = /^[+-](@(all|keyspace|write|slow|dangerous)|flushall|flushdb)$/;

/** The names of users whose ACL rules permit them to empty the database. @throws Error  ACL LIST is refused */
export async function readFlushers({ redis }: Link): Promise<readonly string[]> {
  const lines = (await redis.call("ACL", "LIST")) as unknown[];
  return lines.flatMap((line) => {
    const [, name = "", ...rules] = String(line).split(" ");
    if (!rules.includes("on")) return [];
    // The last matching rule decides.
    const last = rules.filter((rule) => WITH_FLUSH.test(rule)).at(-1);
    return last?.startsWith("+") ? [name] : [];
  });
}

/** Servers before Redis 7, whose replicas also get the scripts of the master. */
import type { RedisServer } from "../../../../tests/support/redis-server.js";
import type { Script } from "../../src/core/store.js";
import { IF_OTHER_RUN } from "../../src/server/lineage.js";
import { Runs, textFor } from "../../src/stores/failover-guard.js";

/** Whether replicas of this server get its scripts. */
export async function sharesScripts(server: RedisServer): Promise<boolean> {
  const [, major] = /redis_version:(\d+)/.exec(String(await server.command("INFO", "server"))) ?? [];
  return Number(major) < 7;
}

/** Returns the hash under which clients load a script on this server, which was never promoted. */
export async function hashesOn(server: RedisServer): Promise<(script: Script) => string> {
  const [, id = ""] = /run_id:(\w+)/.exec(String(await server.command("INFO", "server"))) ?? [];
  if (!(await sharesScripts(server))) return ({ sha1 }) => sha1;
  const run = new Runs(() => {}).of(id);
  return (script) => (script.grants === true ? textFor(script, run, IF_OTHER_RUN).sha1 : script.sha1);
}

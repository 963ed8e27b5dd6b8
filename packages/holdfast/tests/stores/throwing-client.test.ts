import { expect, test } from "vitest";
import { mutexAcquire } from "../../src/generated/scripts.js";
import { IF_OTHER_RUN } from "../../src/server/lineage.js";
import { type ScriptClient, ScriptRunner } from "../../src/stores/script-runner.js";
import { ServerFailoverGuard } from "../../src/stores/server-failover-guard.js";

test("a call rejects if the client throws while a script is loaded", async () => {
  const client: ScriptClient = {
    evalsha: () => Promise.reject(new Error("NOSCRIPT No matching script")),
    load() {
      throw new Error("the client has no connection");
    },
    isClosed: () => false,
    losses: () => 0,
  };
  const ask = async () => ({ outcome: "settled", longestMs: Infinity, run: "a" }) as const;
  const inspectSlot = async () => ({ outcome: "hidden" }) as const;
  const guard = new ServerFailoverGuard({ marker: "marker", ifOtherRun: IF_OTHER_RUN, ask, inspectSlot }, () =>
    Promise.reject(new Error("not asked this way")),
  );
  await expect(new ScriptRunner(client, guard).run(mutexAcquire, ["a", "b", "c"], [], 1_000)).rejects.toThrow(
    "no connection",
  );
});

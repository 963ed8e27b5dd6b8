import { expect, test } from "vitest";
import { mutexAcquire } from "../../src/generated/scripts.js";
import { GraceGate } from "../../src/stores/grace.js";
import { type ScriptClient, ScriptRunner } from "../../src/stores/script-runner.js";

test("a client that throws while it is taught a script that grants rejects the call", async () => {
  const client: ScriptClient = {
    evalsha: () => Promise.reject(new Error("NOSCRIPT No matching script")),
    load() {
      throw new Error("the client has no connection");
    },
    isClosed: () => false,
    losses: () => 0,
  };
  const ask = async () => ({ outcome: "settled", longestMs: Infinity, run: "a" }) as const;
  const look = async () => ({ outcome: "hidden" }) as const;
  const gate = new GraceGate({ marker: "marker", ask, look }, () => Promise.reject(new Error("not asked this way")));
  await expect(new ScriptRunner(client, gate).run(mutexAcquire, ["a", "b", "c"], [], 1_000)).rejects.toThrow(
    "no connection",
  );
});

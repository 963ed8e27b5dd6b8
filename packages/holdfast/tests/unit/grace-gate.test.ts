import { expect, test } from "vitest";
import type { Grace } from "../../src/core/store.js";
import { mutexAcquire, mutexRelease } from "../../src/generated/scripts.js";
import { IF_OTHER_RUN } from "../../src/server/lineage.js";
import { ServerFailoverGuard } from "../../src/stores/server-failover-guard.js";

const LEASE_MS = 3_000;
const TIMEOUT_MS = 1_000;

test("a new connection reports the longest lease, even if its first request has none", async () => {
  const told: number[] = [];
  const grace: Grace = {
    marker: "hf:lineage",
    ifOtherRun: IF_OTHER_RUN,
    async ask(_run, _marker, leaseMs) {
      told.push(leaseMs);
      return { outcome: "settled", longestMs: leaseMs, run: `run${told.length}` };
    },
    inspectSlot: () => Promise.reject(new Error("this is no cluster")),
  };
  const guard = new ServerFailoverGuard(grace, () => Promise.reject(new Error("nothing else is asked")));
  const args = mutexAcquire.args.map((name) => (name === "leaseMs" ? LEASE_MS : 1));
  expect(guard.ready({ script: mutexAcquire, keys: [], args, timeoutMs: TIMEOUT_MS })).toBeUndefined();
  await guard.ask({ script: mutexAcquire, keys: [], args, timeoutMs: TIMEOUT_MS });
  // The server that knew the lease is gone, and its marker may not have reached its successor.
  guard.serverMayHaveChanged();
  await guard.ask({ script: mutexRelease, keys: [], args: [], timeoutMs: TIMEOUT_MS });
  expect(told).toEqual([LEASE_MS, LEASE_MS]);
});

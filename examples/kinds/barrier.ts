import { strict as assert } from "node:assert";
import { embedded } from "@holdfast/embedded";
import { createHoldfast } from "holdfast";

const holdfast = createHoldfast({ store: embedded() });
const phases = ["load", "sort", "write"];
const done: string[] = [];

const barrier = holdfast.barrier("phase", { parties: 4 });

async function worker(label: string): Promise<void> {
  for (const phase of phases) {
    await work(phase);
    await barrier.arrive({ waitMs: 60_000, label }); // until all four have arrived
  }
}

async function work(phase: string): Promise<void> {
  done.push(phase);
}

await Promise.all(["worker 1", "worker 2", "worker 3", "worker 4"].map(worker));
assert.deepEqual(
  done,
  phases.flatMap((phase) => [phase, phase, phase, phase]),
);
await holdfast.close();

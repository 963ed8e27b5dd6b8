import { strict as assert } from "node:assert";
import { embedded } from "@holdfast/embedded";
import { createHoldfast } from "holdfast";

const holdfast = createHoldfast({ store: embedded() });
const written: string[] = [];

const report = holdfast.reentrantMutex("report");

// Safe alone, and inside another run.
const addPage = () => report.run(() => write("page"));

const addChapter = () =>
  report.run(async () => {
    await addPage(); // the same hold, no round trip
    await addPage();
  });

async function write(text: string): Promise<void> {
  written.push(text);
}

await Promise.all([addChapter(), addPage()]);
assert.equal(written.length, 3);
await holdfast.close();

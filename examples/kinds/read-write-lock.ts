import { strict as assert } from "node:assert";
import { embedded } from "@holdfast/embedded";
import { createHoldfast } from "holdfast";

const holdfast = createHoldfast({ store: embedded() });
const steps: string[] = [];

const catalog = holdfast.readWriteLock("catalog");

await catalog.read.run(() => renderPage());
await catalog.write.run(async (lease) => {
  await rebuild({ fence: lease.token });
  await lease.downgrade(); // others read from here on, and nobody writes in between
  await verify();
});

async function renderPage(): Promise<void> {
  steps.push("render");
}

async function rebuild({ fence }: { fence: number }): Promise<void> {
  assert.equal(await catalog.read.tryAcquire(), null);
  steps.push(fence > 0 ? "rebuild" : "");
}

async function verify(): Promise<void> {
  await catalog.read.run(() => renderPage()); // shows that readers are admitted
  steps.push("verify");
}

assert.deepEqual(steps, ["render", "rebuild", "render", "verify"]);
await holdfast.close();

import { strict as assert } from "node:assert";
import { embedded } from "@holdfast/embedded";
import { createHoldfast } from "holdfast";

const holdfast = createHoldfast({ store: embedded() });
const observing = new AbortController();
const { signal } = observing;
const seen: (string | undefined)[] = [];
let isKnown = (): void => {};
const known = new Promise<void>((resolve) => {
  isKnown = resolve;
});

// In each process that may lead:
const election = holdfast.election("feed");
const leading = election.run(
  async (leadership) => {
    await pullFeed({ fence: leadership.term, signal: leadership.signal });
  },
  { value: "10.0.0.7:8080", waitMs: Infinity, delayMs: 500 },
);

// In each process that must know the leader:
for await (const leader of election.observe({ signal })) {
  connectTo(leader?.value); // undefined if nobody leads
  if (leader !== null) break;
}

async function pullFeed({ fence, signal: lost }: { fence: number; signal: AbortSignal }): Promise<void> {
  assert.ok(fence > 0 && !lost.aborted);
  await known;
}

function connectTo(address: string | undefined): void {
  seen.push(address);
}

isKnown();
await leading;
assert.equal(seen.at(-1), "10.0.0.7:8080");
await holdfast.close();

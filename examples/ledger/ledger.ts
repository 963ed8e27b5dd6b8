/**
 * Several processes write a ledger, one at a time, with a lock on five servers, two of which fail in the middle. Each
 * entry continues the previous one and has the fencing token of its writer, so that a late write is refused.
 *
 *     npm run build && node examples/dist/ledger/ledger.js
 *
 * It runs in this process, or on the servers that REDIS_URLS names, separated by spaces: three, five, seven or nine
 * independent servers.
 */
import { strict as assert } from "node:assert";
import { setImmediate as turn } from "node:timers/promises";
import { embedded, Keyspace } from "@holdfast/embedded";
import { createHoldfast, type Holdfast } from "holdfast";
import { Redis } from "ioredis";

const WRITERS = 3;
const ENTRIES = 10;

interface Entry {
  readonly text: string;
  /** The sum of all entries up to this one. */
  readonly total: number;
  readonly fence: number;
}

/** Stands for a file on a shared disk. Without a lock, it may change between a process's read and its write. */
const ledger: Entry[] = [];

async function append(text: string, amount: number, fence: number): Promise<void> {
  const last = ledger.at(-1);
  await turn();
  // Compare with the present last entry, not with the one read before: the writer may have stalled in between.
  assert.ok(fence > (ledger.at(-1)?.fence ?? 0), "a writer whose time is over writes nothing");
  ledger.push({ text, total: (last?.total ?? 0) + amount, fence });
}

/** A client of a server, and a function that disconnects it. */
interface Server {
  readonly client: object;
  readonly lose: () => unknown;
}

const urls = process.env.REDIS_URLS?.split(/\s+/);
const keyspaces = Array.from({ length: 5 }, () => new Keyspace());

function connect(): Server[] {
  if (urls === undefined) {
    return keyspaces.map((keyspace) => {
      const client = embedded({ keyspace });
      return { client, lose: () => client.close() };
    });
  }
  return urls.map((url) => {
    const client = new Redis(url);
    return { client, lose: () => client.disconnect() };
  });
}

async function write(holdfast: Holdfast, writer: number, entries: number): Promise<void> {
  const lock = holdfast.redlock("ledger");
  for (let i = 0; i < entries; i += 1) {
    await lock.run((lease) => append(`writer ${writer}`, 1, lease.token), { waitMs: Infinity });
  }
}

// Each set of connections stands for a process.
const connections = Array.from({ length: WRITERS }, connect);
const writers = connections.map((servers) =>
  // A server that was just started may have lost its memory, so it grants nothing for one lease. Keep that short here.
  createHoldfast({ redlock: servers.map(({ client }) => client), leaseMs: 2_000 }),
);

await Promise.all(writers.map((holdfast, writer) => write(holdfast, writer, ENTRIES / 2)));
// A minority of the servers fails for all processes.
for (const servers of connections) {
  const minority = servers.slice(0, Math.floor(servers.length / 2));
  await Promise.all(minority.map(({ lose }) => lose()));
}
await Promise.all(writers.map((holdfast, writer) => write(holdfast, writer, ENTRIES / 2)));

assert.equal(ledger.length, WRITERS * ENTRIES);
assert.deepEqual(
  ledger.map(({ total }) => total),
  ledger.map((_, i) => i + 1),
);
process.stdout.write(`ledger: ${ledger.length} entries in a row, with ${keptServers()} servers left\n`);

await Promise.all(writers.map((holdfast) => holdfast.close()));
for (const servers of connections) for (const { lose } of servers) await lose();

function keptServers(): string {
  const count = urls?.length ?? keyspaces.length;
  return `${count - Math.floor(count / 2)} of ${count}`;
}

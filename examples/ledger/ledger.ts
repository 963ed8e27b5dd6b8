/**
 * A ledger that several processes write, one at a time, under a lock on five servers of which two go away meanwhile. Each
 * entry continues the one before it, and carries the token of its writer: whoever is too late is turned away.
 *
 *     npm run build && node examples/dist/ledger/ledger.js
 *
 * It runs in this process, or on the servers that REDIS_URLS names, separated by spaces: three, five, seven or nine that know
 * nothing of each other.
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
  /** Of everything up to here. */
  readonly total: number;
  readonly fence: number;
}

/** Stands for a file on a shared disk: what is read may be old when it is written, unless a lock keeps others out. */
const ledger: Entry[] = [];

async function append(text: string, amount: number, fence: number): Promise<void> {
  const last = ledger.at(-1);
  await turn();
  // With what is there now, and not with what was read: a writer who stood still in between has read something old.
  assert.ok(fence > (ledger.at(-1)?.fence ?? 0), "a writer whose time is over writes nothing");
  ledger.push({ text, total: (last?.total ?? 0) + amount, fence });
}

/** A client of a server, and how to lose that server. */
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

// Each stands for a process.
const connections = Array.from({ length: WRITERS }, connect);
const writers = connections.map((servers) =>
  // Servers that were just started, and may have forgotten, stay out for one lease: so it is short here.
  createHoldfast({ redlock: servers.map(({ client }) => client), leaseMs: 2_000 }),
);

await Promise.all(writers.map((holdfast, writer) => write(holdfast, writer, ENTRIES / 2)));
// A minority goes away, for everybody.
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
